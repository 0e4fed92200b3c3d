import { KeyedSemaphore } from './keyed-semaphore.js';

describe('Turns', () => {
  it('lets so many of one key work at once, in order, whatever happens to them', async () => {
    const turns = new KeyedSemaphore(2);
    const begun: number[] = [];
    const ends: ((fails?: boolean) => void)[] = [];
    const work = (n: number) =>
      turns.run('a', () => {
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
    await turns.run('a', () => Promise.resolve());
  });

  it('counts keys apart', async () => {
    const turns = new KeyedSemaphore(1);
    const busy = new Promise<void>(() => undefined);
    void turns.run('a', () => busy);
    await expect(turns.run('b', () => Promise.resolve('done'))).resolves.toBe('done');
  });
});
