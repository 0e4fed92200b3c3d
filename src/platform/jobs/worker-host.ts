import { Worker, type Job, type QueueOptions } from 'bullmq';
import { RialtoError, errorCodes } from '../../kernel/errors.js';
import { jobs, type JobName } from '../../kernel/jobs.js';
import type { Logger } from '../telemetry/logger.js';
import type { JobHandler } from './handles-job.decorator.js';
import { AttemptFailed, QueuedRun } from './job-run.js';
import type { QueueTrouble } from './queue-trouble.js';

const closeBudgetMs = 20_000;

/** The queue workers of this process; made only in the roles `all` and `worker`. */
export class WorkerHost {
  private readonly workers: Worker[] = [];

  constructor(
    private readonly options: QueueOptions,
    private readonly log: Logger,
    private readonly trouble: QueueTrouble,
  ) {}

  start(handlers: ReadonlyMap<JobName, JobHandler<JobName>>): void {
    for (const [name, handler] of handlers) this.workers.push(this.startWorker(name, handler));
  }

  private startWorker(name: JobName, handler: JobHandler<JobName>): Worker {
    const { queue, concurrency } = jobs[name];
    const worker = new Worker(queue, (job: Job) => this.work(name, handler, job), {
      ...this.options,
      concurrency,
      maxStalledCount: 1_000,
    });
    worker.on('error', (err) => this.trouble.report(queue, err));
    return worker;
  }

  /** Payloads are parsed again when taken: what lies in the queue may be yesterday's, or anybody's (F19). */
  private async work(name: JobName, handler: JobHandler<JobName>, job: Job): Promise<void> {
    const { queue, payload } = jobs[name];
    const parsed = payload.safeParse(job.data);
    const run = new QueuedRun(job);
    try {
      if (!parsed.success) throw new RialtoError('invalid_params', { message: 'not a payload of this queue; dropped' });
      await handler.handle(parsed.data, run);
    } catch (err) {
      if (err instanceof AttemptFailed) throw err;
      this.log.warn({ err, queue, jobId: job.id }, 'a job failed');
      throw new AttemptFailed(reasonOf(err));
    } finally {
      await run.settled();
    }
  }

  /** Stops taking work, gives running jobs a bounded time, then lets go: rows with expired leases are taken over. */
  async close(): Promise<void> {
    const closed = Promise.all(this.workers.map((worker) => worker.close()));
    const late = new Promise<'late'>((resolve) => setTimeout(resolve, closeBudgetMs, 'late').unref());
    if ((await Promise.race([closed, late])) === 'late') {
      await Promise.all(this.workers.map((worker) => worker.close(true)));
    }
  }
}

/** An error nobody foresaw may say anything; the log has it, the board its title. */
function reasonOf(error: unknown): string {
  const { code, message } = RialtoError.from(error);
  const { title, public: isPublic } = errorCodes[code];
  return `${code}: ${isPublic ? message : title}`;
}
