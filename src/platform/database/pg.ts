import type { Pool, PoolClient, QueryResultRow } from 'pg';
import type { DataSource } from 'typeorm';
import { statementError } from './outage.js';

/** The pool of node-postgres under TypeORM: hot statements go straight to it, named, so that the server prepares them once. */
export class Pg {
  constructor(readonly pool: Pool) {}

  static of(dataSource: DataSource): Pg {
    return new Pg((dataSource.driver as unknown as { master: Pool }).master);
  }

  /**
   * Runs a statement under a name: the same name must always carry the same text. Throws `unavailable` when the server is away, else
   * what it says.
   */
  async rows<Row extends QueryResultRow>(name: string, text: string, values: unknown[] = []): Promise<Row[]> {
    try {
      return (await this.pool.query<Row>({ name, text, values })).rows;
    } catch (error) {
      throw statementError(error);
    }
  }

  /** A connection of one's own until it is released. It may break meanwhile. Throws `unavailable`. */
  async connect(): Promise<PoolClient> {
    const client = await this.pool.connect().catch((error: unknown) => {
      throw statementError(error);
    });
    if (!client.listeners('error').includes(toldAnyway)) client.on('error', toldAnyway);
    return client;
  }
}

/** Whoever has the connection hears of it at the next statement; unheard, the event would end the process. */
const toldAnyway = (): void => undefined;

/** SQLSTATE classes 22 and 54: a value that the database cannot hold, today or later. */
export function isUnstorable(error: unknown): boolean {
  const fault = (error as { driverError?: unknown } | undefined)?.driverError ?? error;
  return /^(22|54)...$/.test((fault as { code?: string } | undefined)?.code ?? '');
}

/** SQLSTATE 23505: a unique index refused the row. `constraint` narrows it to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const fault = (error as { driverError?: unknown }).driverError ?? error;
  const { code, constraint: name } = fault as { code?: string; constraint?: string };
  return code === '23505' && (constraint === undefined || name === constraint);
}
