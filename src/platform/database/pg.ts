import type { Pool, QueryResultRow } from 'pg';
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
}

/** SQLSTATE 23505: a unique index refused the row. `constraint` narrows it to one index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const fault = (error as { driverError?: unknown }).driverError ?? error;
  const { code, constraint: name } = fault as { code?: string; constraint?: string };
  return code === '23505' && (constraint === undefined || name === constraint);
}
