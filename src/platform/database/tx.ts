import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { statementError } from './outage.js';
import { positional, type SqlParams } from './sql.js';

/** One transaction of a cold path. `afterCommit` takes an effect that must not happen before the commit. */
export interface Tx {
  readonly manager: EntityManager;
  afterCommit(effect: () => void): void;
}

/**
 * Runs a statement with named parameters (`:id`) in a transaction. Resolves with its rows; for an update or a delete,
 * with its rows and their number.
 */
export function queryIn<Answer>(
  { manager }: Pick<Tx, 'manager'>,
  statement: string,
  params: SqlParams,
): Promise<Answer> {
  const { text, values } = positional(statement, params);
  return manager.query<Answer>(text, values);
}

/**
 * Runs work in one transaction (READ COMMITTED). Effects run after the commit, in order, and never after a rollback.
 * Throws like Pg.rows.
 */
@Injectable()
export class TxRunner {
  constructor(private readonly dataSource: DataSource) {}

  async run<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    const effects: (() => void)[] = [];
    const result = await this.dataSource
      .transaction((manager) => work({ manager, afterCommit: (effect) => void effects.push(effect) }))
      .catch((error: unknown) => {
        throw statementError(error);
      });
    for (const effect of effects) effect();
    return result;
  }
}
