import pg from 'pg';
import { SnapshotCache } from '../../src/platform/database/snapshot-cache.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

/** Returns a promise and the function that resolves it. */
function gate(): { open: () => void; passed: Promise<void> } {
  let open = (): void => undefined;
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}

describe('SnapshotCache over a row', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let loads: number;
  let probes: number;
  let released: string[];
  /** Awaited between the read of the row and its delivery. */
  let hold: Promise<void> | undefined;

  const read = async (key: string): Promise<{ version: string; text: string }> =>
    (
      await pool.query<{ version: string; text: string }>('select version::text, text from test_rows where key = $1', [
        key,
      ])
    ).rows[0]!;
  const write = (key: string, text: string) =>
    pool.query(
      `insert into test_rows values ($1, 1, $2)
       on conflict (key) do update set version = test_rows.version + 1, text = $2`,
      [key, text],
    );
  const make = (maxAgeMs = 60_000, maxEntries = 500) =>
    new SnapshotCache<string>(
      {
        probe: async (key) => {
          probes++;
          return (await read(key)).version;
        },
        load: async (key) => {
          loads++;
          const { text } = await read(key);
          await hold;
          return text;
        },
        release: (value) => void released.push(value),
      },
      maxAgeMs,
      maxEntries,
    );

  beforeAll(async () => {
    database = await createTestDatabase('snapshots');
    pool = new pg.Pool({ connectionString: database.url, max: 4 });
    await pool.query('create table test_rows (key text primary key, version int not null, text text not null)');
  });

  beforeEach(async () => {
    [loads, probes, released, hold] = [0, 0, [], undefined];
    await pool.query('truncate test_rows');
    await write('k', 'one');
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('loads once for many readers and answers from memory', async () => {
    const cache = make();
    expect(cache.peek('k')).toBeUndefined();
    expect(await Promise.all([cache.get('k'), cache.get('k'), cache.get('k')])).toEqual(['one', 'one', 'one']);
    expect(cache.peek('k')).toBe('one');
    expect([loads, probes]).toEqual([1, 1]);
  });

  it('checks again after it expired, and loads only changed rows', async () => {
    const cache = make();
    await cache.get('k');
    cache.expire('k');
    expect(cache.peek('k')).toBeUndefined();
    expect(await cache.get('k')).toBe('one');
    expect([loads, probes]).toEqual([1, 2]);
    await write('k', 'two');
    cache.expireAll();
    expect(await cache.get('k')).toBe('two');
    expect(released).toEqual(['one']);
  });

  it('finds a change with a lost notice when the entry gets too old', async () => {
    const cache = make(0);
    expect(await cache.get('k')).toBe('one');
    await write('k', 'two');
    expect(await cache.get('k')).toBe('two');
  });

  it('does not keep a row that was read before the change that expired it', async () => {
    const cache = make();
    const held = gate();
    hold = held.passed;
    const before = cache.get('k');
    while (loads === 0) await new Promise(setImmediate);
    await write('k', 'two');
    cache.expire('k');
    hold = undefined;
    const after = cache.get('k');
    expect(await after).toBe('two');
    held.open();
    expect(await before).toBe('one');
    expect(cache.peek('k')).toBe('two');
    expect(await cache.get('k')).toBe('two');
  });

  it('does not keep it either when no reader asked again in between', async () => {
    const cache = make();
    const held = gate();
    hold = held.passed;
    const before = cache.get('k');
    while (loads === 0) await new Promise(setImmediate);
    await write('k', 'two');
    cache.expire('k');
    held.open();
    await before;
    expect(await cache.get('k')).toBe('two');
  });

  it('keeps a bounded number of keys and releases the others', async () => {
    const cache = make(60_000, 2);
    for (const key of ['a', 'b', 'c']) {
      await write(key, key);
      await cache.get(key);
    }
    expect(released).toEqual(['a']);
    expect([cache.peek('a'), cache.peek('c')]).toEqual([undefined, 'c']);
  });

  it('loads again after a load that failed', async () => {
    const cache = make();
    await expect(cache.get('missing')).rejects.toThrow(TypeError);
    await write('missing', 'here');
    expect(await cache.get('missing')).toBe('here');
  });
});
