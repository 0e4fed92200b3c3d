import { Semaphore } from './semaphore.js';

describe('Semaphore', () => {
  it('limits the work that runs at once, keeps the order, and continues after a failure', async () => {
    const semaphore = new Semaphore(2);
    const begun: number[] = [];
    const ends: ((failed?: boolean) => void)[] = [];
    const all = [0, 1, 2, 3, 4].map((number) =>
      semaphore
        .run(() => {
          begun.push(number);
          return new Promise<number>((resolve, reject) =>
            ends.push((failed) => (failed ? reject(new Error('no')) : resolve(number))),
          );
        })
        .catch(() => 'failed'),
    );
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    await settle();
    expect(begun).toEqual([0, 1]);
    ends[1]!(true);
    await settle();
    expect(begun).toEqual([0, 1, 2]);
    ends[0]!();
    ends[2]!();
    await settle();
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    ends[3]!();
    ends[4]!();
    expect(await Promise.all(all)).toEqual([0, 'failed', 2, 3, 4]);
    expect(await semaphore.run(() => Promise.resolve('in'))).toBe('in');
  });

  it('starts work of lower priority only while no work of higher priority waits', async () => {
    const semaphore = new Semaphore(1);
    const begun: string[] = [];
    const pass = (name: string, priority?: number) => semaphore.run(() => Promise.resolve(begun.push(name)), priority);
    await Promise.all([pass('inside'), pass('a', 2), pass('b', 2), pass('c'), pass('d', 1), pass('e')]);
    expect(begun).toEqual(['inside', 'c', 'e', 'd', 'a', 'b']);
  });
});
