import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker, type Job, type JobJson, type QueueOptions } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { jobs, type JobName } from '../../kernel/jobs.js';
import type { Logger } from '../telemetry/logger.js';
import type { JobHandler } from './handles-job.decorator.js';
import { AttemptFailed, QueuedRun, type JobFacts } from './job-run.js';
import type { QueueState } from './queue-state.js';
import type { QueueTrouble } from './queue-trouble.js';

/** Jobs of a killed process are offered again after two such checks; their rows are taken over long before. */
const stalledInterval = 10_000;
/** The rows decide when work is given up, never the queue (F9). */
const maxStalledCount = 1_000_000;

/** Longest pause between two tries at a queue that fails to give jobs. */
const longestPauseMs = 1_000;

/**
 * In milliseconds: how long a worker may request no job while jobs wait, and how often that is checked; how long
 * running jobs may take while the process stops, and how long the worker may take to leave its queue once no job
 * runs.
 */
const defaultTimeouts = { wedgedMs: 30_000, checkMs: 5_000, jobsMs: 20_000, leaveMs: 2_000 };

/** The queue workers of this process; created only in the roles `all` and `worker`. */
export class WorkerHost {
  private readonly workers = new Map<JobName, WatchedWorker>();
  private watch?: NodeJS.Timeout;

  constructor(
    private readonly options: QueueOptions,
    private readonly state: QueueState,
    private readonly log: Logger,
    private readonly trouble: QueueTrouble,
    private readonly timeouts = defaultTimeouts,
  ) {}

  start(handlers: ReadonlyMap<JobName, JobHandler<JobName>>): void {
    for (const [name, handler] of handlers) this.startWorker(name, handler);
    const check = (): void => handlers.forEach((handler, name) => void this.replaceWedged(name, handler));
    this.watch = setInterval(check, this.timeouts.checkMs);
  }

  private startWorker(name: JobName, handler: JobHandler<JobName>): void {
    const { queue, concurrency } = jobs[name];
    const worker = new WatchedWorker(queue, (job: Job) => this.work(name, handler, job), {
      ...this.options,
      concurrency,
      maxStalledCount,
      stalledInterval,
    });
    worker.on('error', (err) => this.trouble.report(queue, err));
    this.workers.set(name, worker);
  }

  /** Replaces a worker that lost its queue silently: it would never request a job again (F16). */
  private async replaceWedged(name: JobName, handler: JobHandler<JobName>): Promise<void> {
    const worker = this.workers.get(name)!;
    if (worker.silentMs < this.timeouts.wedgedMs || !(await this.state.hasWaiting(name))) return;
    if (this.workers.get(name) !== worker || !this.watch) return;
    this.log.warn({ queue: worker.name, silentMs: worker.silentMs }, 'a worker requests no jobs; it is replaced');
    worker.close(true).catch(() => undefined);
    this.startWorker(name, handler);
  }

  /**
   * Runs a job. Payloads are parsed again here: a payload in the queue may come from an older version, or from
   * another program (F19).
   */
  private async work(name: JobName, handler: JobHandler<JobName>, job: Job): Promise<JobFacts | void> {
    const { queue, payload } = jobs[name];
    const parsed = payload.safeParse(job.data);
    const run = new QueuedRun(job);
    try {
      if (!parsed.success)
        throw new RialtoError('invalid_params', { message: 'the payload does not fit this queue; the job is dropped' });
      return await handler.handle(parsed.data, run);
    } catch (err) {
      if (err instanceof AttemptFailed) throw err;
      this.log.warn({ err, queue, jobId: job.id }, 'a job failed');
      throw new AttemptFailed(reasonOf(err));
    } finally {
      await run.settled();
    }
  }

  /**
   * Stops taking work, gives running jobs a bounded time, then stops waiting for them: other processes take over rows
   * with expired leases.
   */
  async close(): Promise<void> {
    clearInterval(this.watch);
    this.watch = undefined;
    const { jobsMs, leaveMs } = this.timeouts;
    await Promise.all([...this.workers.values()].map((worker) => worker.leave(jobsMs, leaveMs)));
  }
}

/** A worker that knows when it last requested a job, and how many jobs it runs. */
class WatchedWorker extends Worker {
  private requestedAt = systemClock.elapsed();
  private busy = 0;
  private readonly idle = new EventEmitter();
  private readonly leaving = new AbortController();
  private failures = 0;

  /**
   * Milliseconds since the last request for a job; 0 while all its slots are busy, because it then has no reason to
   * request one.
   */
  get silentMs(): number {
    return this.busy < this.concurrency ? systemClock.elapsed() - this.requestedAt : 0;
  }

  /**
   * Closes the worker. When its queue cannot be reached, its connection never ends; then the worker disconnects
   * without waiting for it.
   */
  async leave(jobsMs: number, leaveMs: number): Promise<void> {
    this.leaving.abort();
    const closed = this.close().then(() => true);
    const late = (ms: number): Promise<boolean> => sleep(ms, false, { ref: false });
    const isClosed = await Promise.race([closed, late(jobsMs), this.whenIdle().then(() => late(leaveMs))]);
    if (!isClosed) void this.disconnect().catch(() => undefined);
  }

  private async whenIdle(): Promise<void> {
    if (this.busy > 0) await once(this.idle, 'idle');
  }

  /**
   * Waits before a retry: BullMQ retries errors other than a refused connection at once, thousands of times a second.
   */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    try {
      const job = await super.moveToActive(token, name);
      this.failures = 0;
      return job;
    } catch (error) {
      const pauseMs = Math.min(longestPauseMs, 50 * 2 ** this.failures++);
      await sleep(pauseMs, undefined, { ref: false, signal: this.leaving.signal }).catch(() => undefined);
      throw error;
    }
  }

  protected override nextJobFromJobData(data?: JobJson, id?: string, token?: string) {
    this.requestedAt = systemClock.elapsed();
    return super.nextJobFromJobData(data, id, token);
  }

  protected override async callProcessJob(job: Job, token: string, signal?: AbortSignal): Promise<unknown> {
    this.busy++;
    try {
      return (await super.callProcessJob(job, token, signal)) as unknown;
    } finally {
      this.requestedAt = systemClock.elapsed();
      if (--this.busy === 0) this.idle.emit('idle');
    }
  }
}

/** An unexpected error may contain anything, so the board shows its title only; the log has the full error. */
function reasonOf(error: unknown): string {
  const { code, message } = RialtoError.from(error);
  const { title, public: isPublic } = errorCodes[code];
  return `${code}: ${isPublic ? message : title}`;
}
