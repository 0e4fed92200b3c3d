import { GroupCommit } from './group-commit.js';

/** Waits until the work that was scheduled for the next turn of the event loop has started. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('the lanes of a group commit', () => {
  /** Sizes of the batches that begin while no batch has ended. */
  const batchSizes = async (changes: number, laneOpensAt?: number): Promise<number[]> => {
    const sizes: number[] = [];
    const flush = (batch: number[]): Promise<number[]> => {
      sizes.push(batch.length);
      return new Promise(() => undefined);
    };
    const group = new GroupCommit<number, number>(flush, { maxBatch: 64, laneOpensAt });
    void group.commit(0);
    await turn();
    for (let change = 1; change < changes; change++) void group.commit(change);
    await turn();
    return sizes;
  };

  it('open when a full batch waits, or when `laneOpensAt` changes wait', async () => {
    expect([await batchSizes(64), await batchSizes(65)]).toEqual([[1], [1, 64]]);
    expect([await batchSizes(20, 20), await batchSizes(21, 20), await batchSizes(60, 20)]).toEqual([
      [1],
      [1, 20],
      [1, 59],
    ]);
  });

  it('commit the changes of one turn of the event loop together', async () => {
    const batches: number[][] = [];
    const group = new GroupCommit<number, number>((batch) =>
      Promise.resolve(void batches.push(batch)).then(() => batch),
    );
    const first = Promise.all([1, 2, 3].map((change) => group.commit(change)));
    expect(batches).toEqual([]);
    expect(await first).toEqual([1, 2, 3]);
    await group.commit(4);
    expect(batches).toEqual([[1, 2, 3], [4]]);
  });

  it('take no change that shares a key with a batch in another lane', async () => {
    const under: { batch: string[]; end: () => void }[] = [];
    const flush = (batch: string[]): Promise<string[]> =>
      new Promise((resolve) => under.push({ batch, end: () => resolve(batch) }));
    const group = new GroupCommit<string, string>(flush, { laneOpensAt: 1, keysOf: (change) => [...change] });
    const all = Promise.all(['a', 'ab', 'b', 'c', 'a'].map((change) => group.commit(change)));
    await turn();
    expect(under.map(({ batch }) => batch)).toEqual([['a', 'c']]);
    void group.commit('d');
    await turn();
    expect(under.map(({ batch }) => batch)).toEqual([['a', 'c'], ['d']]);
    under[1]!.end();
    await turn();
    expect(under).toHaveLength(2);
    under[0]!.end();
    await turn();
    expect(under[2]!.batch).toEqual(['ab']);
    under[2]!.end();
    await turn();
    expect(under[3]!.batch).toEqual(['b', 'a']);
    under[3]!.end();
    expect(await all).toEqual(['a', 'ab', 'b', 'c', 'a']);
  });
});

describe('a failed batch of a group commit', () => {
  const refused = Object.assign(new Error('duplicate key'), { code: '23505', severity: 'ERROR' });
  const broken = new Error('Connection terminated unexpectedly');
  /**
   * Commits the letters at once. `fail` returns the error of a batch, given its letters and the number of earlier
   * tries.
   */
  const commit = async (
    letters: string,
    fail: (batch: string, tries: number) => Error | undefined,
    mayRepeat = true,
  ) => {
    const batches: string[] = [];
    const flush = (batch: string[]): Promise<string[]> => {
      const failure = fail(batch.join(''), batches.length);
      batches.push(batch.join(''));
      return failure ? Promise.reject(failure) : Promise.resolve(batch);
    };
    const group = new GroupCommit(flush, { mayRepeat });
    const outcomes = await Promise.allSettled([...letters].map((letter) => group.commit(letter)));
    return {
      batches,
      outcomes: outcomes.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as Error))),
    };
  };

  it('is split in halves after a refusal, in order, until the bad change is alone', async () => {
    const { batches, outcomes } = await commit('abXcd', (batch) => (batch.includes('X') ? refused : undefined));
    expect(outcomes).toEqual(['a', 'b', refused, 'c', 'd']);
    expect(batches).toEqual(['abXcd', 'ab', 'Xcd', 'X', 'cd']);
  });

  it('is sent once more when its connection broke, and rejects with the first error when that fails too', async () => {
    const once = await commit('ab', (_, tries) => (tries === 0 ? broken : undefined));
    expect(once).toEqual({ batches: ['ab', 'ab'], outcomes: ['a', 'b'] });
    const twice = await commit('ab', () => broken);
    expect(twice).toEqual({ batches: ['ab', 'ab'], outcomes: [broken, broken] });
    const refusedOnRetry = await commit('ab', (_, tries) => (tries === 0 ? broken : refused));
    expect(refusedOnRetry).toEqual({ batches: ['ab', 'ab', 'a', 'b'], outcomes: [broken, broken] });
  });

  it('is not sent again when its callers check the outcome themselves', async () => {
    expect(await commit('ab', () => broken, false)).toEqual({ batches: ['ab'], outcomes: [broken, broken] });
  });
});
