import { InjectQueue } from '@nestjs/bullmq';
import { Inject, Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { jobs, type JobPayload } from '../../kernel/jobs.js';
import { Semaphore } from '../../kernel/semaphore.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { HandlesJob, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import type { JobFacts, JobRun } from './job-run.js';
import { QueueState } from './queue-state.js';

/** Below this interval the queue is not used: each process sweeps by its own timer. */
const minScheduledMs = 1_000;
/**
 * Intervals without a start after which a process looks at the schedule. A job is lost with the process that was killed
 * while it took it, and the work of that process waits for the next sweep.
 */
const lateIntervals = 1.5;
/** Sweeps that a process runs at once: all of them together would take every database connection. */
const maxSweeps = 4;

/** Whole seconds up to this interval share the jobs of one second: a job costs more than most sweeps. */
const maxSharedMs = 10_000;

/** The interval of the jobs that start the sweeps of this interval. */
const jobIntervalOf = (everyMs: number): number =>
  everyMs % minScheduledMs === 0 && everyMs <= maxSharedMs ? minScheduledMs : everyMs;
const nameOf = (jobIntervalMs: number): string => `every ${jobIntervalMs} ms`;
const schedulerName = /^every \d+(?:\.\d+)? ms$/;

/**
 * Repeats the sweepers of this process. With job schedulers, one worker of all replicas sweeps. In addition each
 * process has timers: it sweeps when the next job is overdue or unknown one and a half intervals after the last start,
 * or when it got no job for three intervals. So a lost queue stops nothing.
 */
@Injectable()
@HandlesJob('sweep.run')
export class Sweeping implements JobHandler<'sweep.run'> {
  private readonly sweepers = new Map<string, Sweeper>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly scheduling = new Set<number>();
  /** The timer of each sweep, which every start of the sweep starts anew. */
  private readonly timers = new Map<string, NodeJS.Timeout>();
  /** Sweeps that had no start for one and a half intervals, while other processes took the jobs. */
  private readonly elsewhere = new Set<string>();
  private readonly runs = new Semaphore(maxSweeps);

  constructor(
    @InjectQueue(jobs['sweep.run'].queue) private readonly queue: Queue,
    private readonly state: QueueState,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Runs every sweep once, the most frequent first, and repeats it from then on. */
  startSweeps(sweepers: ReadonlyMap<string, Sweeper>): void {
    const isHeld = this.state.isHeld('sweep.run');
    const byUrgency = [...sweepers].sort(([, one], [, other]) => one.everyMs - other.everyMs);
    for (const [name, sweeper] of byUrgency) {
      const { everyMs } = sweeper;
      const isScheduled = everyMs >= minScheduledMs;
      this.sweepers.set(name, sweeper);
      void this.runs.run(async () => {
        if (!isScheduled || !(await isHeld)) await this.runLogged(name);
      });
      const timer = isScheduled
        ? setInterval(() => void this.runLate(name, everyMs), lateIntervals * everyMs)
        : setInterval(() => void this.runLogged(name), everyMs);
      this.timers.set(name, timer);
    }
    const scheduled = byUrgency.map(([, { everyMs }]) => everyMs).filter((everyMs) => everyMs >= minScheduledMs);
    const intervals = new Set(scheduled.map(jobIntervalOf));
    for (const everyMs of intervals) void this.runs.run(() => this.schedule(everyMs), 1);
    void this.runs.run(() => this.removeOtherSchedulers([...intervals].map(nameOf)), 1);
  }

  /** Runs a sweep that the queue has not started in time, unless an operator has paused the queue. */
  private async runLate(name: string, everyMs: number): Promise<void> {
    if (await this.state.isHeld('sweep.run')) return;
    const jobEveryMs = jobIntervalOf(everyMs);
    const dueMs = await this.state.nextDueMs('sweep.run', nameOf(jobEveryMs));
    const isFar = dueMs !== undefined && dueMs > lateIntervals * jobEveryMs;
    const goesOn = dueMs !== undefined && dueMs > 0 && !isFar;
    if (goesOn && !this.elsewhere.has(name)) return void this.elsewhere.add(name);
    // Not while other processes take the jobs: a new schedule may have other times.
    if (dueMs === undefined || isFar || dueMs < -lateIntervals * jobEveryMs) void this.schedule(jobEveryMs, isFar);
    await this.runLogged(name);
  }

  /**
   * Runs a sweep and logs its failure. While a sweep still runs it does nothing, so that each failure is logged once.
   */
  private async runLogged(name: string): Promise<void> {
    if (this.running.has(name)) return;
    await this.runSweep(name).catch((err: unknown) => this.log.warn({ err, sweeper: name }, 'a sweep failed'));
  }

  /**
   * Runs the sweeps of a job scheduler that are due at the time of its job, or the sweeps that a job of an earlier
   * version names. The job fails when one of them fails.
   */
  async handle({ sweeper }: JobPayload<'sweep.run'>, { scheduledAt }: Pick<JobRun, 'scheduledAt'>): Promise<JobFacts> {
    const isDue = (everyMs: number): boolean =>
      sweeper === nameOf(everyMs) ||
      (sweeper === nameOf(jobIntervalOf(everyMs)) &&
        Math.floor(scheduledAt / minScheduledMs) % (everyMs / minScheduledMs) === 0);
    const names = [...this.sweepers]
      .filter(([name, { everyMs }]) => sweeper === name || isDue(everyMs))
      .map(([name]) => name);
    const ends = await Promise.allSettled(names.map((name) => this.runs.run(() => this.runSweep(name))));
    const [first, ...others] = ends.flatMap((end, index) =>
      end.status === 'rejected' ? [{ err: end.reason as unknown, sweeper: names[index] }] : [],
    );
    for (const failure of others) this.log.warn(failure, 'a sweep failed');
    if (first) throw first.err;
    return { sweeps: names.join(', ') };
  }

  /** Jobs that the worker of this process has taken still run all their sweeps: no other process would run them. */
  stopTimers(): void {
    for (const timer of this.timers.values()) clearInterval(timer);
    this.timers.clear();
  }

  /** Stops sweeping, also by jobs, and waits for the sweeps that run. */
  async close(): Promise<void> {
    this.stopTimers();
    this.sweepers.clear();
    await Promise.allSettled(this.running.values());
  }

  /**
   * Several late sweeps may schedule the same jobs; the queue refuses all but one at a time.
   * @param anew removes the schedule first: the queue keeps the time of a known one, which a wrong clock may have set.
   */
  private async schedule(every: number, anew = false): Promise<void> {
    if (this.scheduling.has(every)) return;
    this.scheduling.add(every);
    const name = nameOf(every);
    const opts = { attempts: 1, removeOnComplete: { count: 20 }, removeOnFail: { count: 100 } };
    try {
      if (this.sweepers.size === 0) return;
      if (anew) await this.queue.removeJobScheduler(name);
      await this.queue.upsertJobScheduler(name, { every }, { name, data: { sweeper: name }, opts });
    } catch (err) {
      this.log.warn({ err, sweeper: name }, 'sweeps could not be scheduled; the timer of the process runs them');
    } finally {
      this.scheduling.delete(every);
    }
  }

  /** Earlier versions had a scheduler for each sweeper or for each interval. */
  private async removeOtherSchedulers(names: readonly string[]): Promise<void> {
    if (this.sweepers.size === 0) return;
    try {
      for (const { key } of await this.queue.getJobSchedulers())
        if (this.sweepers.has(key) || (schedulerName.test(key) && !names.includes(key)))
          await this.queue.removeJobScheduler(key);
    } catch (err) {
      this.log.warn({ err }, 'the job schedulers of an earlier version could not be removed');
    }
  }

  /**
   * Runs one sweep of a kind at a time in this process; a concurrent call waits for the running one. Runs none after
   * the process has stopped sweeping.
   */
  private runSweep(name: string): Promise<void> {
    const known = this.running.get(name);
    const sweeper = this.sweepers.get(name);
    if (known || !sweeper) return known ?? Promise.resolve();
    this.elsewhere.delete(name);
    this.timers.get(name)?.refresh();
    const run = sweeper.sweep().finally(() => this.running.delete(name));
    this.running.set(name, run);
    return run;
  }
}
