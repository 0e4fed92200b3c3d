import { SnapshotCache } from './snapshot-cache.js';

describe('SnapshotCache', () => {
  let rows: string;
  /** Ends the reads that are in progress: each has read its row at its start. */
  let finishReads: () => void;
  let cache: SnapshotCache<string>;

  beforeEach(() => {
    rows = 'old';
    let waiting: (() => void)[] = [];
    finishReads = () => {
      for (const finish of waiting) finish();
      waiting = [];
    };
    cache = new SnapshotCache<string>({
      probe: async () => {
        const version = rows;
        await new Promise<void>((resolve) => waiting.push(resolve));
        return version;
      },
      load: (_key, version) => Promise.resolve(version),
    });
  });

  const read = async (): Promise<string> => {
    const value = cache.get('a');
    finishReads();
    return value;
  };

  it('reads a key once while its value is fresh', async () => {
    expect(await read()).toBe('old');
    rows = 'new';
    expect([await cache.get('a'), cache.peek('a')]).toEqual(['old', 'old']);
  });

  it.each([
    ['its key expires', () => cache.expire('a')],
    ['all keys expire', () => cache.expireAll()],
  ])('does not cache the result of a first read when %s before its end', async (_what, expire) => {
    const first = cache.get('a');
    rows = 'new';
    expire();
    finishReads();
    expect([await first, cache.peek('a')]).toEqual(['old', undefined]);
    expect(await read()).toBe('new');
  });

  it('probes again after an expiry', async () => {
    await read();
    rows = 'new';
    cache.expireAll();
    expect(cache.peek('a')).toBeUndefined();
    expect(await read()).toBe('new');
  });
});
