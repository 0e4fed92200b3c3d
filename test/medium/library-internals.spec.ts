import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import pg from 'pg';
import { createDataSource, migrateDatabase } from '../../src/platform/database/migrate.js';
import { PoolClient } from '../../src/platform/database/pool-client.js';
import { prepareQueues, type QueueBackend } from '../../src/platform/jobs/queue-backend.js';
import { PatientPool } from '../../src/platform/library-internals/patient-pool.js';
import { poolOf } from '../../src/platform/library-internals/typeorm-pool.js';
import { WatchedWorker } from '../../src/platform/library-internals/watched-worker.js';
import { createLogger } from '../../src/platform/telemetry/logger.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

describe('insides of libraries that the gateway uses', () => {
  let database: TestDatabase;
  let queues: QueueBackend;
  beforeAll(async () => {
    database = await createTestDatabase('internals');
    await migrateDatabase(database.url);
    const settings = { REDIS_URL: undefined, RIALTO_QUEUE_PREFIX: 'internals' };
    queues = await prepareQueues(settings, database.url, createLogger('silent'));
  });
  afterAll(async () => {
    await queues.close();
    await database.drop();
  });

  it('TypeORM connects with a pool of node-postgres', async () => {
    const dataSource = await createDataSource(database.url, []).initialize();
    try {
      const pool = poolOf(dataSource);
      expect(pool).toBeInstanceOf(PatientPool);
      const client = await pool.connect();
      expect(client).toBeInstanceOf(PoolClient);
      client.release();
    } finally {
      await dataSource.destroy();
    }
  });

  it('a pool opens one connection at a time, and as many as are needed at once', async () => {
    let opening = 0;
    let most = 0;
    class CountedClient extends pg.Client {
      override connect(connected?: any): any {
        most = Math.max(most, ++opening);
        return super.connect((error: Error) => {
          opening--;
          connected(error);
        });
      }
    }
    const pool = new PatientPool({ connectionString: database.url, Client: CountedClient, max: 4 });
    const held = await Promise.all(Array.from({ length: 4 }, () => pool.connect()));
    expect(most).toBe(1);
    const later = pool.query('select 1 as one');
    expect([pool.totalCount, pool.waitingCount]).toEqual([4, 1]);
    for (const client of held) client.release();
    expect((await later).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  it('a pool answers every statement when its server refuses connections', async () => {
    const pool = new PatientPool({ connectionString: 'postgres://127.0.0.1:1/none', max: 4 });
    const ends = await Promise.allSettled(Array.from({ length: 20 }, () => pool.query('select 1')));
    expect(ends.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 'rejected'));
    expect([pool.totalCount, pool.waitingCount]).toEqual([0, 0]);
    await pool.end();
  });

  it('BullMQ requests and runs jobs by the methods that the worker overrides', async () => {
    const queue = new Queue('internals', queues.options);
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    const worker = new WatchedWorker('internals', () => finished, { ...queues.workerOptions, concurrency: 1 });
    try {
      const silentBefore = worker.silentMs;
      await sleep(100);
      expect(worker.silentMs).toBeGreaterThan(silentBefore);
      const active = once(worker, 'active');
      await queue.add('any', {});
      await active;
      await sleep(50);
      expect(worker.silentMs).toBe(0);
      const completed = once(worker, 'completed');
      finish();
      await completed;
      await sleep(50);
      expect(worker.silentMs).toBeGreaterThan(0);
    } finally {
      await worker.close(true);
      await queue.close();
    }
  });
});
