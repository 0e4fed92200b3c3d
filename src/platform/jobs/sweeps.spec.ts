import type { DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import type { Settings } from '../config/settings.js';
import type { Logger } from '../telemetry/logger.js';
import type { Sweeper } from './handles-job.decorator.js';
import { JobsModule } from './jobs.module.js';
import type { QueueState } from './queue-state.js';
import type { QueueTrouble } from './queue-trouble.js';
import { Sweeping } from './sweeps.js';
import type { WorkerHost } from './worker-host.js';

describe('the sweeps of a process', () => {
  const swept: string[] = [];
  const scheduled: string[] = [];
  const earlier: string[] = [];
  const removed: string[] = [];
  const warn = jest.fn();
  /** When the next job of the schedule is due, in milliseconds from now. */
  let next: number | undefined;
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
    next = undefined;
    const state = { isHeld, nextDueMs: () => Promise.resolve(next) };
    sweeping = new Sweeping(queue as unknown as Queue, state as unknown as QueueState, log);
  });

  afterEach(() => sweeping.close());

  it('with one interval have one job, in place of one each; the fastest have none', async () => {
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000), sweeper('orgs', 90_000), sweeper('seal', 500));
    expect(scheduled).toEqual(['every 60000 ms', 'every 90000 ms']);
    expect(isHeld).toHaveBeenCalledTimes(1);
    expect(await sweeping.handle({ sweeper: 'every 60000 ms' }, { scheduledAt: 1 })).toEqual({
      sweeps: 'tasks, cards',
    });
    expect(swept.filter((name) => name !== 'seal')).toEqual(['tasks', 'cards']);
  });

  it('of whole seconds up to ten share the job of each second: it runs those that are due at its time', async () => {
    await start(
      sweeper('a', 1_000),
      sweeper('b', 2_000),
      sweeper('c', 5_000),
      sweeper('odd', 2_500),
      sweeper('d', 30_000),
    );
    expect(scheduled).toEqual(['every 1000 ms', 'every 2500 ms', 'every 30000 ms']);
    const dueAt = async (second: number) => {
      await sweeping.handle({ sweeper: 'every 1000 ms' }, { scheduledAt: second * 1_000 + 300 });
      return swept.splice(0).join('');
    };
    const due: string[] = [];
    for (let second = 20; second <= 30; second++) due.push(await dueAt(second));
    expect(due).toEqual(['abc', 'a', 'ab', 'a', 'ab', 'ac', 'ab', 'a', 'ab', 'a', 'abc']);
  });

  it('lose the schedulers of earlier versions, which had one for each sweeper or interval', async () => {
    earlier.push('tasks', 'cards', 'every 5000 ms', 'of another product');
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000), sweeper('orgs', 5_000));
    expect(removed).toEqual(['tasks', 'cards', 'every 5000 ms']);
  });

  it('run for a job of an earlier version alone or by interval, and not at all for another', async () => {
    await start(sweeper('tasks', 5_000), sweeper('cards', 60_000));
    expect(await sweeping.handle({ sweeper: 'cards' }, { scheduledAt: 1_000 })).toEqual({ sweeps: 'cards' });
    expect(await sweeping.handle({ sweeper: 'every 5000 ms' }, { scheduledAt: 1_000 })).toEqual({ sweeps: 'tasks' });
    expect(await sweeping.handle({ sweeper: 'gone' }, { scheduledAt: 1_000 })).toEqual({ sweeps: '' });
    expect(swept).toEqual(['cards', 'tasks']);
  });

  it('that wait for their turn when the process stops do not run', async () => {
    await start(...['a', 'b', 'c', 'd', 'e', 'f'].map((name) => sweeper(name, 60_000)));
    const job = sweeping.handle({ sweeper: 'every 60000 ms' }, { scheduledAt: 1 });
    await sweeping.close();
    await job;
    expect(swept).toEqual(['a', 'b', 'c', 'd']);
  });

  it('run for a job that the worker takes while the process stops', async () => {
    await start(sweeper('tasks', 60_000), sweeper('cards', 60_000));
    const host = { close: () => sweeping.handle({ sweeper: 'every 60000 ms' }, { scheduledAt: 1 }) };
    const jobsModule = new JobsModule(
      { RIALTO_ROLE: 'all' } as Settings,
      host as unknown as WorkerHost,
      {} as DiscoveryService,
      sweeping,
      { expect: () => undefined } as unknown as QueueTrouble,
    );
    jobsModule.onModuleDestroy();
    await jobsModule.beforeApplicationShutdown();
    expect(swept).toEqual(['tasks', 'cards']);
  });

  it('all run when one fails: the job fails with the first error, and the others are logged', async () => {
    await start(
      sweeper('tasks', 60_000, new Error('one')),
      sweeper('cards', 60_000, new Error('other')),
      sweeper('orgs', 60_000),
    );
    warn.mockReset();
    await expect(sweeping.handle({ sweeper: 'every 60000 ms' }, { scheduledAt: 1 })).rejects.toThrow('one');
    expect(swept).toEqual(['tasks', 'cards', 'orgs']);
    expect(warn.mock.calls).toEqual([
      [{ err: expect.objectContaining({ message: 'other' }), sweeper: 'cards' }, 'a sweep failed'],
    ]);
  });

  describe('that the queue does not start', () => {
    const queueLate = async (ms: number) => {
      await jest.advanceTimersByTimeAsync(ms);
      return swept.splice(0);
    };

    beforeEach(async () => {
      jest.useFakeTimers();
      sweeping.startSweeps(new Map([sweeper('tasks', 1_000)]));
      await queueLate(700);
      scheduled.length = 0;
      await sweeping.handle({ sweeper: 'every 1000 ms' }, { scheduledAt: 1_000 });
      swept.length = 0;
    });
    afterEach(() => jest.useRealTimers());

    it.each([
      ['is overdue', -500],
      ['is unknown', undefined],
    ])('run one and a half intervals after the start before, and so on, when the next job %s', async (_, due) => {
      next = due;
      expect(await queueLate(1_499)).toEqual([]);
      expect(await queueLate(1)).toEqual(['tasks']);
      expect(await queueLate(1_499)).toEqual([]);
      expect(await queueLate(1)).toEqual(['tasks']);
    });

    it('run after three intervals while other processes take the jobs', async () => {
      next = 600;
      expect(await queueLate(2_999)).toEqual([]);
      expect(await queueLate(1)).toEqual(['tasks']);
      await queueLate(1_500);
      await sweeping.handle({ sweeper: 'every 1000 ms' }, { scheduledAt: 1_000 });
      swept.length = 0;
      expect(await queueLate(2_999)).toEqual([]);
    });

    it('do not run while an operator has paused the queue', async () => {
      isHeld.mockResolvedValueOnce(true);
      expect(await queueLate(1_500)).toEqual([]);
      expect(scheduled).toEqual([]);
    });

    it.each([
      ['is lost', undefined, ['every 1000 ms'], []],
      ['has lost its next job', -1_501, ['every 1000 ms'], []],
      ['is that of a clock that is far ahead', 3_600_000, ['every 1000 ms'], ['every 1000 ms']],
      ['is late', -500, [], []],
      ['goes on in other processes', 600, [], []],
    ])('leave the schedule alone, unless it is lost: one that %s', async (_, due, anew, gone) => {
      next = due;
      removed.length = 0;
      await queueLate(3_000);
      expect([[...new Set(scheduled)], [...new Set(removed)]]).toEqual([anew, gone]);
    });
  });
});
