import { parentPort, workerData } from 'node:worker_threads';
import pg from 'pg';
import type { OrgId } from '../../kernel/ids.js';
import { columnTypes } from '../../platform/database/long-json.js';
import { Pg } from '../../platform/database/pg.js';
import { PoolClient } from '../../platform/database/pool-client.js';
import { sealWaiting } from './seal.js';

/** What the thread is asked: to seal the events of an org (`sealWaiting`). */
export interface SealQuestion {
  readonly id: number;
  readonly org: OrgId;
  readonly wait: boolean;
}

/** `sealed` is the number of sealed events; absent after an error. */
export interface SealAnswer {
  readonly id: number;
  readonly sealed?: number;
}

const pool = new pg.Pool({
  connectionString: workerData as string,
  max: 2,
  keepAlive: true,
  connectionTimeoutMillis: 5_000,
  statement_timeout: 15_000,
  application_name: 'rialto:seal',
  types: columnTypes,
  Client: PoolClient,
});
pool.on('error', () => undefined);
const database = new Pg(pool);

parentPort!.on('message', ({ id, org, wait }: SealQuestion) => {
  const answer = (sealed?: number): void => parentPort!.postMessage({ id, sealed } satisfies SealAnswer);
  // The caller repeats the work in its own thread, and reports the error if there is one again.
  sealWaiting(database, org, wait).then(answer, () => answer());
});
