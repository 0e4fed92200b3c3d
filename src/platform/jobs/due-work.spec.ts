import { createLogger } from '../telemetry/logger.js';
import { Metrics, type SweepOutcome } from '../telemetry/metrics.js';
import { DueSweep } from './due-work.js';
import { AttemptFailed } from './job-run.js';

describe('a sweep of due work', () => {
  const silent = createLogger('silent');
  const never = new Promise<void>(() => undefined);
  const kind = 'tasks';

  interface Behaviour {
    isHeld?: () => boolean;
    isOrphan?: (item: string) => boolean;
    ring?: (item: string) => boolean;
    run?: (item: string) => Promise<SweepOutcome | void>;
  }

  const sweepOf = (due: () => string[], behaviour: Behaviour = {}) => {
    const { isHeld = () => false, isOrphan = () => false, ring = () => true, run } = behaviour;
    const [enqueued, ran]: [string[], string[]] = [[], []];
    const metrics = new Metrics();
    const work = {
      kind,
      find: () => Promise.resolve(due()),
      keyOf: (item: string) => item,
      isHeld: () => Promise.resolve(isHeld()),
      isOrphan,
      ring: (item: string) => (enqueued.push(item), Promise.resolve(ring(item))),
      run: (item: string) => (ran.push(item), run?.(item) ?? never),
    } as const;
    const counts = async () => {
      await new Promise(setImmediate);
      const { values } = await metrics.swept.get();
      const known = values.filter(({ labels, value }) => labels.kind === kind && value > 0);
      return Object.fromEntries(known.map(({ labels, value }) => [labels.outcome, value]));
    };
    return { sweep: new DueSweep<string>(work, metrics, silent), enqueued, ran, counts };
  };

  it('enqueues due work, and runs itself what is still due at the next sweep', async () => {
    const { sweep, enqueued, ran } = sweepOf(() => ['a']);
    await sweep.sweep();
    expect([enqueued, ran]).toEqual([['a'], []]);
    await sweep.sweep();
    await sweep.sweep();
    expect([enqueued, ran]).toEqual([['a'], ['a']]);
  });

  it('only enqueues while the queue is paused, and gives the queue one more interval afterwards', async () => {
    let held = true;
    const { sweep, enqueued, ran } = sweepOf(() => ['a'], { isHeld: () => held });
    await sweep.sweep();
    await sweep.sweep();
    held = false;
    await sweep.sweep();
    expect([enqueued.length, ran]).toEqual([3, []]);
    await sweep.sweep();
    expect(ran).toEqual(['a']);
  });

  it('runs orphaned work at once: a job that died with its process may still hold the key in the queue', async () => {
    const { sweep, enqueued, ran } = sweepOf(() => ['a', 'lost'], { isOrphan: (item) => item === 'lost' });
    await sweep.sweep();
    expect([enqueued, ran]).toEqual([['a'], ['lost']]);
  });

  it('enqueues orphans that exceed the local limit', async () => {
    const items = Array.from({ length: 132 }, (_, index) => `item ${index}`);
    const { sweep, enqueued, ran } = sweepOf(() => items, { isOrphan: () => true });
    await sweep.sweep();
    expect([enqueued.length, ran.length]).toEqual([4, 128]);
  });

  it('AN-79 counts the due work it found, and the outcome of each item', async () => {
    const ends: Record<string, () => Promise<SweepOutcome | void>> = {
      begun: () => Promise.resolve(),
      failing: () => Promise.reject(new AttemptFailed('recorded')),
      elsewhere: () => Promise.resolve('skipped'),
      spent: () => Promise.resolve('markedFailed'),
      broken: () => Promise.reject(new Error('no database')),
      long: () => never,
    };
    const { sweep, counts } = sweepOf(() => ['enqueued', 'refused', ...Object.keys(ends)], {
      isOrphan: (item) => item in ends,
      ring: (item) => item === 'enqueued',
      run: (item) => ends[item]!(),
    });
    await sweep.sweep();
    expect(await counts()).toEqual({ selected: 8, dispatched: 3, dispatchFailed: 2, skipped: 1, markedFailed: 1 });
    const again = sweepOf(() => ['long'], { isOrphan: () => true });
    await again.sweep.sweep();
    await again.sweep.sweep();
    expect(await again.counts()).toEqual({ selected: 2, skipped: 1 });
  });
});
