import { AsyncLocalStorage } from 'node:async_hooks';
import { DataSource } from 'typeorm';
import type { Gateway } from '../../../src/app.js';
import { Pg } from '../../../src/platform/database/pg.js';
import { TxRunner } from '../../../src/platform/database/tx.js';

/**
 * Lets work in a transaction fail when it takes a second connection. As many such requests as there are connections
 * would wait for each other, and no other request would get a connection.
 */
export function forbidSecondConnections(gateway: Gateway): void {
  const inside = new AsyncLocalStorage<true>();
  const runner = gateway.get(TxRunner);
  const run = runner.run.bind(runner);
  runner.run = (work) => run((tx) => inside.run(true, () => work(tx)));
  const { pool } = Pg.of(gateway.get(DataSource));
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => unknown;
  const checked = (...args: unknown[]): unknown => {
    if (inside.getStore()) throw new Error('a second connection inside a transaction');
    return connect(...args);
  };
  pool.connect = checked as typeof pool.connect;
}
