import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import { jobs, type JobPayload } from '../../kernel/jobs.js';
import { Semaphore } from '../../kernel/semaphore.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { HandlesJob, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import { QueueState } from './queue-state.js';

/** Below this interval the queue is not used: each process sweeps by its own timer. */
const minScheduledMs = 1_000;
/** Sweeps that run at once when the process starts: all of them together would take every database connection. */
const maxFirstSweeps = 4;

/**
 * Repeats the sweepers of this process. With one job scheduler for each sweeper, one worker of all replicas sweeps.
 * In addition each process has a timer that sweeps when the queue has started no sweep for two intervals, so a lost
 * queue stops nothing.
 */
@Injectable()
@HandlesJob('sweep.run')
export class Sweeping implements JobHandler<'sweep.run'> {
  private readonly sweepers = new Map<string, Sweeper>();
  private readonly lastStart = new Map<string, number>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly starts = new Semaphore(maxFirstSweeps);

  constructor(
    @InjectQueue(jobs['sweep.run'].queue) private readonly queue: Queue,
    private readonly state: QueueState,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Runs every sweep once, the most frequent first, and repeats it from then on. */
  startSweeps(sweepers: ReadonlyMap<string, Sweeper>): void {
    const byUrgency = [...sweepers].sort(([, one], [, other]) => one.everyMs - other.everyMs);
    for (const [name, sweeper] of byUrgency) {
      const { everyMs } = sweeper;
      const isScheduled = everyMs >= minScheduledMs;
      const sweepIfDue = (): Promise<void> => (isScheduled ? this.runIfLate(name, everyMs) : this.runLogged(name));
      this.sweepers.set(name, sweeper);
      this.lastStart.set(name, Number.NEGATIVE_INFINITY);
      void this.starts.run(sweepIfDue);
      if (isScheduled) void this.starts.run(() => this.schedule(name, everyMs), 1);
      this.timers.push(setInterval(() => void sweepIfDue(), everyMs));
    }
  }

  /** Runs a sweep that the queue has not started in time, unless an operator has paused the queue. */
  private async runIfLate(name: string, everyMs: number): Promise<void> {
    const silentMs = systemClock.elapsed() - this.lastStart.get(name)!;
    if (silentMs < 2 * everyMs || (await this.state.isHeld('sweep.run')) || !this.sweepers.has(name)) return;
    // A queue that lost all its data has lost the schedule too.
    if (Number.isFinite(silentMs)) void this.schedule(name, everyMs);
    await this.runLogged(name);
  }

  /**
   * Runs a sweep and logs its failure. While a sweep still runs it does nothing, so that each failure is logged once.
   */
  private async runLogged(name: string): Promise<void> {
    if (this.running.has(name) || !this.sweepers.has(name)) return;
    await this.runSweep(name).catch((err: unknown) => this.log.warn({ err, sweeper: name }, 'a sweep failed'));
  }

  async handle({ sweeper }: JobPayload<'sweep.run'>): Promise<void> {
    if (this.sweepers.has(sweeper)) await this.runSweep(sweeper);
  }

  /** Stops repeating and waits for running sweeps. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    this.sweepers.clear();
    await Promise.allSettled(this.running.values());
  }

  private async schedule(name: string, every: number): Promise<void> {
    if (!this.sweepers.has(name)) return;
    const data = { sweeper: name };
    const opts = { attempts: 1, removeOnComplete: { count: 20 }, removeOnFail: { count: 100 } };
    await this.queue
      .upsertJobScheduler(name, { every }, { name, data, opts })
      .catch((err: unknown) =>
        this.log.warn({ err, sweeper: name }, 'a sweep could not be scheduled; the timer of the process runs it'),
      );
  }

  /** Runs one sweep of a kind at a time in this process; a concurrent call waits for the running one. */
  private runSweep(name: string): Promise<void> {
    const known = this.running.get(name);
    if (known) return known;
    this.lastStart.set(name, systemClock.elapsed());
    const run = this.sweepers
      .get(name)!
      .sweep()
      .finally(() => this.running.delete(name));
    this.running.set(name, run);
    return run;
  }
}
