import { KeyedSemaphore } from './keyed-semaphore.js';

describe('KeyedSemaphore', () => {
  it('limits the work of one key, in order, also when work fails', async () => {
    const semaphore = new KeyedSemaphore(2);
    const begun: number[] = [];
    const ends: ((fails?: boolean) => void)[] = [];
    const work = (n: number) =>
      semaphore.run('a', () => {
        begun.push(n);
        return new Promise<void>((resolve, reject) => {
          ends[n] = (fails) => (fails ? reject(new Error('no')) : resolve());
        });
      });
    const all = [0, 1, 2, 3].map((n) => work(n).catch(() => undefined));
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    ends[1]!(true);
    await all[1];
    expect(begun).toEqual([0, 1, 2]);
    ends[0]!();
    ends[2]!();
    await Promise.all([all[0], all[2]]);
    expect(begun).toEqual([0, 1, 2, 3]);
    ends[3]!();
    await all[3];
    await semaphore.run('a', () => Promise.resolve());
  });

  it('counts each key separately', async () => {
    const semaphore = new KeyedSemaphore(1);
    const busy = new Promise<void>(() => undefined);
    void semaphore.run('a', () => busy);
    await expect(semaphore.run('b', () => Promise.resolve('done'))).resolves.toBe('done');
  });
});
