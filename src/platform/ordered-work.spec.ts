import { setImmediate as nextTurn } from 'node:timers/promises';
import { OrderedWork } from './ordered-work.js';

describe('OrderedWork', () => {
  const ordered = () => {
    const seen: unknown[] = [];
    return { seen, work: new OrderedWork((thrown) => void seen.push((thrown as Error).message)) };
  };
  const slow = (seen: unknown[], name: string, error?: string) => async (): Promise<void> => {
    await nextTurn();
    if (error !== undefined) throw new Error(error);
    seen.push(name);
  };

  it('runs a piece at once while no other runs', () => {
    const { seen, work } = ordered();
    expect(work.run(() => void seen.push('a'))).toBeUndefined();
    expect([seen, work.isBusy]).toEqual([['a'], false]);
  });

  it('runs each piece after those before it, and the next at once when all have ended', async () => {
    const { seen, work } = ordered();
    void work.run(slow(seen, 'a'));
    void work.run(() => void seen.push('b'));
    const last = work.run(slow(seen, 'c'));
    expect([seen, work.isBusy]).toEqual([[], true]);
    await last;
    expect([seen, work.isBusy]).toEqual([['a', 'b', 'c'], false]);
    void work.run(() => void seen.push('d'));
    expect(seen.at(-1)).toBe('d');
  });

  it('passes on the error of a piece, and runs the next one', async () => {
    const { seen, work } = ordered();
    void work.run(() => {
      throw new Error('at once');
    });
    void work.run(slow(seen, 'a', 'later'));
    void work.run(() => {
      throw new Error('in its turn');
    });
    await work.run(slow(seen, 'b'));
    expect(seen).toEqual(['at once', 'later', 'in its turn', 'b']);
  });
});
