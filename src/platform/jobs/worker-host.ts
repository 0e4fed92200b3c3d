import type { Job, QueueOptions } from 'bullmq';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { jobs, type JobName } from '../../kernel/jobs.js';
import { WatchedWorker } from '../library-internals/watched-worker.js';
import type { Logger } from '../telemetry/logger.js';
import type { JobHandler } from './handles-job.decorator.js';
import { AttemptFailed, QueuedRun, type JobFacts } from './job-run.js';
import type { QueueState } from './queue-state.js';
import type { QueueTrouble } from './queue-trouble.js';

/** Jobs of a killed process are offered again after two such checks; their rows are taken over long before. */
const stalledInterval = 10_000;
/** The rows decide when work is given up, never the queue. */
const maxStalledCount = 1_000_000;

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

  startWorkers(handlers: ReadonlyMap<JobName, JobHandler<JobName>>): void {
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
    worker.on('error', (err) => this.trouble.logTrouble(queue, err));
    this.workers.set(name, worker);
  }

  /** Replaces a worker that lost its queue silently: it would never request a job again. */
  private async replaceWedged(name: JobName, handler: JobHandler<JobName>): Promise<void> {
    const worker = this.workers.get(name)!;
    if (worker.silentMs < this.timeouts.wedgedMs || !(await this.state.hasWaiting(name))) return;
    if (this.workers.get(name) !== worker || !this.watch) return;
    this.log.warn({ queue: worker.name, silentMs: worker.silentMs }, 'a worker requests no jobs; it is replaced');
    worker.close(true).catch(() => undefined);
    this.startWorker(name, handler);
  }

  /**
   * Runs a job. Payloads are parsed again here: a payload in the queue may come from an older version, or from another
   * program.
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
      throw new AttemptFailed(boardReason(err));
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

/** An unexpected error may contain anything, so the board shows its title only; the log has the full error. */
function boardReason(error: unknown): string {
  const { code, message } = RialtoError.from(error);
  const { title, public: isPublic } = errorCodes[code];
  return `${code}: ${isPublic ? message : title}`;
}
