import { createLogger } from '../telemetry/logger.js';
import { DueSweep } from './due-work.js';

describe('a sweep of due work', () => {
  const silent = createLogger('silent');
  const never = new Promise<void>(() => undefined);

  const sweepOf = (due: () => string[], isOrphan = (_: string) => false) => {
    const [rung, run]: [string[], string[]] = [[], []];
    const work = {
      find: () => Promise.resolve(due()),
      keyOf: (item: string) => item,
      isHeld: () => Promise.resolve(false),
      isOrphan,
      ring: (item: string) => void rung.push(item),
      run: (item: string) => (run.push(item), never),
    };
    return { sweep: new DueSweep<string>(work, silent), rung, run };
  };

  it('rings for what is due, and does itself what still is at the next look', async () => {
    const { sweep, rung, run } = sweepOf(() => ['a']);
    await sweep.sweep();
    expect([rung, run]).toEqual([['a'], []]);
    await sweep.sweep();
    await sweep.sweep();
    expect([rung, run]).toEqual([['a'], ['a']]);
  });

  it('does at once what was orphaned: the key of its ring may be held by a job that died with its process', async () => {
    const { sweep, rung, run } = sweepOf(
      () => ['a', 'lost'],
      (item) => item === 'lost',
    );
    await sweep.sweep();
    expect([rung, run]).toEqual([['a'], ['lost']]);
  });

  it('rings for orphans that have no room here', async () => {
    const items = Array.from({ length: 20 }, (_, index) => `item ${index}`);
    const { sweep, rung, run } = sweepOf(
      () => items,
      () => true,
    );
    await sweep.sweep();
    expect([rung.length, run.length]).toEqual([4, 16]);
  });
});
