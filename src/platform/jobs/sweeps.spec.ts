import type { Queue } from 'bullmq';
import type { Logger } from '../telemetry/logger.js';
import type { Sweeper } from './handles-job.decorator.js';
import type { QueueState } from './queue-state.js';
import { Sweeping } from './sweeps.js';

describe('the sweeps of a process', () => {
  const swept: string[] = [];
  const scheduled: string[] = [];
  const earlier: string[] = [];
  const removed: string[] = [];
  const warn = jest.fn();
  const queue = {
    upsertJobScheduler: (id: string) => Promise.resolve(void scheduled.push(id)),
    getJobSchedulers: () => Promise.resolve([...scheduled, ...earlier].map((key) => ({ key }))),
    removeJobScheduler: (id: string) => Promise.resolve(void removed.push(id)),
  };
  const isHeld = jest.fn(() => Promise.resolve(false));
  const log = { warn } as unknown as Logger;
  let sweeping: Sweeping;

  const sweeper = (name: string, everyMs: number, error?: Error): [string, Sweeper] => {
    const sweep = () => (swept.push(name), error ? Promise.reject(error) : Promise.resolve());
    return [name, { everyMs, sweep }];
  };
  const start = async (...sweepers: [string, Sweeper][]) => {
    sweeping.startSweeps(new Map(sweepers));
    await new Promise((done) => setTimeout(done, 10)); // the first sweeps
    swept.length = 0;
  };

  beforeEach(() => {
    for (const list of [swept, scheduled, earlier, removed]) list.length = 0;
    warn.mockReset();
    isHeld.mockClear();
    sweeping = new Sweeping(queue as unknown as Queue, { isHeld } as unknown as QueueState, log);
  });

  afterEach(() => sweeping.close());

  it('with one interval have one job, in place of one each; the fastest have none', async () => {
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000), sweeper('orgs', 90_000), sweeper('seal', 500));
    expect(scheduled).toEqual(['every 60000 ms', 'every 90000 ms']);
    expect(isHeld).toHaveBeenCalledTimes(1);
    expect(await sweeping.handle({ sweeper: 'every 60000 ms' })).toEqual({ sweeps: 'tasks, cards' });
    expect(swept.filter((name) => name !== 'seal')).toEqual(['tasks', 'cards']);
  });

  it('lose the schedulers of an earlier version, which had one for each', async () => {
    earlier.push('tasks', 'cards', 'of another product');
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000), sweeper('orgs', 90_000));
    expect(removed).toEqual(['tasks', 'cards']);
  });

  it('run alone for a job of an earlier version, and not at all for another', async () => {
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000));
    expect(await sweeping.handle({ sweeper: 'cards' })).toEqual({ sweeps: 'cards' });
    expect(await sweeping.handle({ sweeper: 'gone' })).toEqual({ sweeps: '' });
    expect(swept).toEqual(['cards']);
  });

  it('that wait for their turn when the process stops do not run', async () => {
    await start(...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => sweeper(name, 60_000)));
    const job = sweeping.handle({ sweeper: 'every 60000 ms' });
    await sweeping.close();
    await job;
    expect(swept).toEqual(['a', 'b', 'c', 'd']);
  });

  it('all run when one fails: the job fails with the first error, and the others are logged', async () => {
    await start(
      sweeper('tasks', 60_000, new Error('one')),
      sweeper('cards', 60_000, new Error('other')),
      sweeper('orgs', 60_000),
    );
    warn.mockReset();
    await expect(sweeping.handle({ sweeper: 'every 60000 ms' })).rejects.toThrow('one');
    expect(swept).toEqual(['tasks', 'cards', 'orgs']);
    expect(warn.mock.calls).toEqual([
      [{ err: expect.objectContaining({ message: 'other' }), sweeper: 'cards' }, 'a sweep failed'],
    ]);
  });
});
