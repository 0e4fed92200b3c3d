import pg from 'pg';
import { NamelessClient, PoolClient } from '../../src/platform/database/pool-client.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

describe('a client of the connection pools', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase('pool_client');
  });
  afterAll(() => database.drop());

  it.each([PoolClient, NamelessClient])(
    'that is ended between two queries fails only the next one (R1): %p',
    async (Client) => {
      const pool = new pg.Pool({ connectionString: database.url, max: 2, Client });
      pool.on('error', () => undefined);
      try {
        const client = await pool.connect();
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        // Does not use `once` of node:events, because it also listens to errors.
        const ended = new Promise((resolve) => client.once('end', () => resolve('ended')));
        await pool.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
        expect(await ended).toBe('ended');
        await expect(client.query('select 1')).rejects.toThrow(/not queryable|terminated/);
        client.release(true);
        expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      } finally {
        await pool.end();
      }
    },
  );
});
