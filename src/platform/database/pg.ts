import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { DataSource } from 'typeorm';
import { poolOf } from '../library-internals/typeorm-pool.js';
import { statementError } from './outage.js';
import { positional, type SqlParams } from './sql.js';

/**
 * The node-postgres pool of TypeORM. Hot statements use it directly, with a name, so that the server prepares them
 * once.
 */
export class Pg {
  constructor(readonly pool: Pool) {}

  static of(dataSource: DataSource): Pg {
    return new Pg(poolOf(dataSource));
  }

  /**
   * Runs a statement under a name. One name must always have the same text. Parameters are named (`:id`), or an array
   * for `$1`, `$2` in statements that code puts together. Throws `unavailable` when the server cannot be reached or is
   * busy, else the server's error.
   */
  async rows<Row extends QueryResultRow>(
    name: string,
    statement: string,
    params: SqlParams | unknown[] = [],
  ): Promise<Row[]> {
    const { text, values } = Array.isArray(params)
      ? { text: statement, values: params }
      : positional(statement, params);
    try {
      return (await this.pool.query<Row>({ name, text, values })).rows;
    } catch (error) {
      throw statementError(error);
    }
  }

  /** Reserves a connection until the caller releases it. The connection may break meanwhile. Throws `unavailable`. */
  async connect(): Promise<PoolClient> {
    const client = await this.pool.connect().catch((error: unknown) => {
      throw statementError(error);
    });
    if (!client.listeners('error').includes(ignoreError)) client.on('error', ignoreError);
    return client;
  }
}

/**
 * Ignores the error event: the next statement on the connection rejects anyway, and an unhandled event would end the
 * process.
 */
const ignoreError = (): void => undefined;

/** SQLSTATE classes 22 and 54: a value that the database can never store. */
export function isUnstorable(error: unknown): boolean {
  const fault = (error as { driverError?: unknown } | undefined)?.driverError ?? error;
  return /^(22|54)...$/.test((fault as { code?: string } | undefined)?.code ?? '');
}

/** SQLSTATE 23505: a unique index refused the row. `constraint` limits the check to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const fault = (error as { driverError?: unknown }).driverError ?? error;
  const { code, constraint: name } = fault as { code?: string; constraint?: string };
  return code === '23505' && (constraint === undefined || name === constraint);
}
