import pg from 'pg';
import { RowWriter, writeRows, type RowChange, type RowStatement } from '../../src/platform/database/row-writer.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const insertA: RowStatement = {
  name: 'test-a',
  sql: (rows) => `insert into test_a select * from jsonb_to_recordset(${rows}) as r(id int, text text)`,
};
const insertB: RowStatement = {
  name: 'test-b',
  sql: (rows) => `insert into test_b select id from jsonb_to_recordset(${rows}) as r(id int)`,
};

const a = (id: number, text = 'x'): RowChange => ({ statement: insertA, row: { id, text } });
const b = (id: number): RowChange => ({ statement: insertB, row: { id } });

describe('RowWriter', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let statements: number;
  let counted: Pick<pg.Pool, 'query'>;

  beforeAll(async () => {
    database = await createTestDatabase('writer');
    pool = new pg.Pool({ connectionString: database.url, max: 4 });
    await pool.query('create table test_a (id int primary key, text text not null check (length(text) < 10))');
    await pool.query('create table test_b (id int primary key)');
  });

  beforeEach(async () => {
    await pool.query('truncate test_a, test_b');
    statements = 0;
    const query = (...args: [never]) => {
      statements++;
      return pool.query(...args);
    };
    counted = { query } as never;
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const ids = async (table: string): Promise<number[]> =>
    (await pool.query<{ id: number }>(`select id from ${table} order by id`)).rows.map(({ id }) => id);

  it('commits all waiting rows in one statement', async () => {
    const writer = new RowWriter(counted, 1);
    await Promise.all(Array.from({ length: 65 }, (_, id) => writer.write([a(id)])));
    expect(await ids('test_a')).toHaveLength(65);
    // The first row is written alone, because no other row waits yet; the other 64 fill one batch.
    expect(statements).toBe(2);
  });

  it('never writes more than a batch in one statement', async () => {
    const writer = new RowWriter(counted, 1, 8);
    await Promise.all(Array.from({ length: 33 }, (_, id) => writer.write([a(id)])));
    expect(statements).toBe(5);
    expect(await ids('test_a')).toHaveLength(33);
  });

  it('gives each caller its own outcome: one bad row does not affect the others', async () => {
    const writer = new RowWriter(counted, 1);
    const outcomes = await Promise.allSettled([
      writer.write([a(1)]),
      writer.write([a(2)]),
      writer.write([a(3, 'this text is too long')]),
      writer.write([a(1)]),
      writer.write([a(4)]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ]);
    expect(await ids('test_a')).toEqual([1, 2, 4]);
  });

  it('commits the rows of one caller together or not at all', async () => {
    const writer = new RowWriter(counted);
    await writer.write([a(1), b(1)]);
    await expect(writer.write([a(2), b(1)])).rejects.toMatchObject({ code: '23505' });
    const beside = await Promise.allSettled([
      writer.write([a(5), b(5)]),
      writer.write([a(6, 'much too long text'), b(6)]),
    ]);
    expect(beside.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(await ids('test_a')).toEqual([1, 5]);
    expect(await ids('test_b')).toEqual([1, 5]);
  });

  it('does nothing without rows', async () => {
    await new RowWriter(counted).write([]);
    expect(statements).toBe(0);
  });

  it('writes on another connection the rows that a lost connection did not commit', async () => {
    const writer = new RowWriter(pool, 1);
    pool.on('error', () => undefined);
    await writer.write([a(1)]);
    const blocked = await pool.connect();
    await blocked.query('begin; lock table test_a');
    const lost = writer.write([a(2)]);
    // Queried outside the transaction, because inside it pg_stat_activity does not change.
    const waits = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    while ((await pool.query(waits)).rowCount === 0);
    await pool.query(`select pg_terminate_backend(pid) from (${waits}) as waiting`);
    await blocked.query('commit');
    blocked.release();
    await lost;
    await writer.write([a(3)]);
    expect(await ids('test_a')).toEqual([1, 2, 3]);
  });

  it('writes inside the transaction of its caller', async () => {
    const client = await pool.connect();
    await client.query('begin');
    await writeRows(client, [a(1), b(1), a(2)]);
    await client.query('rollback');
    client.release();
    expect(await ids('test_a')).toEqual([]);
  });

  it('opens a second lane only for a full batch', async () => {
    const held: (() => void)[] = [];
    const query = () => new Promise<void>((done) => held.push(done));
    const writer = new RowWriter({ query } as never, 2, 3);
    const turn = () => new Promise((done) => setImmediate(() => setImmediate(done)));
    const writes: Promise<void>[] = [];
    for (const [ids, statements] of [
      [[1], 1],
      [[2, 3], 1],
      [[4], 2],
    ] as const) {
      writes.push(...ids.map((id) => writer.write([a(id)])));
      await turn();
      expect(held).toHaveLength(statements);
    }
    for (const done of held) done();
    await Promise.all(writes);
  });
});
