import pg from 'pg';
import { NamelessClient, PoolClient } from '../../src/platform/database/pool-client.js';
import { readJson } from '../../src/platform/database/long-json.js';
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

  it('that gets no answer fails its queries, ends its connection, and leaves the pool usable (R1)', async () => {
    class Impatient extends PoolClient {
      constructor(config?: pg.ClientConfig) {
        super(config, 2_000);
      }
    }
    const pool = new pg.Pool({ connectionString: database.url, max: 1, Client: Impatient });
    pool.on('error', () => undefined);
    try {
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      const client = await pool.connect();
      const ended = new Promise((resolve) => client.once('end', () => resolve('ended')));
      const slow = client.query('select pg_sleep(30)');
      const next = client.query('select 1');
      await expect(slow).rejects.toThrow('Query read timeout');
      await expect(next).rejects.toThrow('Query read timeout');
      expect(await ended).toBe('ended');
      client.release(true);
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      await expect(pool.query('select pg_sleep(30)')).rejects.toThrow('Query read timeout');
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    } finally {
      await pool.end();
    }
  });

  it.each([PoolClient, NamelessClient])('parses long JSON before its caller gets the rows: %p', async (Client) => {
    const types = { getTypeParser: () => readJson };
    const pool = new pg.Pool({ connectionString: database.url, max: 2, Client, types: types });
    const [text, values] = [
      'select $1::json as long, $2::json as short',
      [`[${'7,'.repeat(50_000)}12345678901234567]`, '[1]'],
    ];
    const row = { long: [...Array<number>(50_000).fill(7), 12345678901234567n], short: [1] };
    let turns = 0;
    const count = (): void => void (turns++, (next = setImmediate(count)));
    let next = setImmediate(count);
    try {
      expect((await pool.query(text, values)).rows).toEqual([row]);
      const client = await pool.connect();
      expect((await client.query({ name: 'long', text, values })).rows).toEqual([row]);
      const rows = await new Promise((resolve, reject) =>
        client.query(text, values, (error, result) => (error ? reject(error) : resolve(result.rows))),
      );
      expect(rows).toEqual([row]);
      const both = await (client.query(
        `select '[${values[0]!.slice(1, -1)}]'::json as long; select '[1]'::json as short`,
      ) as any);
      expect(both.map((result: pg.QueryResult) => result.rows)).toEqual([[{ long: row.long }], [{ short: row.short }]]);
      await expect(client.query('select 1/0')).rejects.toThrow('division by zero');
      client.release();
    } finally {
      clearImmediate(next);
      await pool.end();
    }
    expect(turns).toBeGreaterThan(1);
  });
});
