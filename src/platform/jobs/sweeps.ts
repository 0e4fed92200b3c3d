import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import { jobs, type JobPayload } from '../../kernel/jobs.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { HandlesJob, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import { QueueState } from './queue-state.js';

/** Below this interval the queue is no help: each process sweeps by its own timer. */
const leastScheduledMs = 1_000;

/**
 * Repeats the sweepers of this process. One job scheduler per sweeper makes one worker of all replicas sweep; behind it each
 * process has a timer that sweeps when nothing was heard for two intervals, so a lost queue stops nothing.
 */
@Injectable()
@HandlesJob('sweep.run')
export class Sweeping implements JobHandler<'sweep.run'> {
  private readonly sweepers = new Map<string, Sweeper>();
  private readonly heard = new Map<string, number>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly timers: NodeJS.Timeout[] = [];

  constructor(
    @InjectQueue(jobs['sweep.run'].queue) private readonly queue: Queue,
    private readonly state: QueueState,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  start(sweepers: ReadonlyMap<string, Sweeper>): void {
    for (const [name, sweeper] of sweepers) {
      this.sweepers.set(name, sweeper);
      const scheduled = sweeper.everyMs >= leastScheduledMs;
      const look = (): void => void (scheduled ? this.past(name, sweeper.everyMs) : this.quietly(name));
      if (scheduled) this.schedule(name, sweeper.everyMs);
      this.heard.set(name, Number.NEGATIVE_INFINITY);
      look();
      this.timers.push(setInterval(look, sweeper.everyMs));
    }
  }

  /** What the queue does not bring in time is done without it, unless an operator holds it. */
  private async past(name: string, everyMs: number): Promise<void> {
    const silentMs = systemClock.elapsed() - this.heard.get(name)!;
    if (silentMs < 2 * everyMs || (await this.state.isHeld('sweep.run')) || !this.sweepers.has(name)) return;
    // A queue that lost everything has lost the schedule too.
    if (Number.isFinite(silentMs)) this.schedule(name, everyMs);
    await this.quietly(name);
  }

  /** One that still runs tells how it ended once, however often its time comes meanwhile. */
  private async quietly(name: string): Promise<void> {
    if (this.running.has(name)) return;
    await this.run(name).catch((err: unknown) => this.log.warn({ err, sweeper: name }, 'a sweep failed'));
  }

  async handle({ sweeper }: JobPayload<'sweep.run'>): Promise<void> {
    if (this.sweepers.has(sweeper)) await this.run(sweeper);
  }

  /** Stops repeating and waits for what runs. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    this.sweepers.clear();
    await Promise.allSettled(this.running.values());
  }

  private schedule(name: string, every: number): void {
    const data = { sweeper: name };
    const opts = { attempts: 1, removeOnComplete: { count: 20 }, removeOnFail: { count: 100 } };
    this.queue
      .upsertJobScheduler(name, { every }, { name, data, opts })
      .catch((err: unknown) => this.log.warn({ err, sweeper: name }, 'a sweep was not scheduled; the timer sweeps'));
  }

  /** One sweep of a kind at a time in this process; whoever comes meanwhile waits for it. */
  private run(name: string): Promise<void> {
    const known = this.running.get(name);
    if (known) return known;
    this.heard.set(name, systemClock.elapsed());
    const run = this.sweepers
      .get(name)!
      .sweep()
      .finally(() => this.running.delete(name));
    this.running.set(name, run);
    return run;
  }
}
