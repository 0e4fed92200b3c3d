import { Worker, type QueueOptions } from 'bullmq';
import { jobs, type JobName } from '../../kernel/jobs.js';
import type { Logger } from '../telemetry/logger.js';
import type { JobHandler } from './handles-job.decorator.js';
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
    const { queue, payload, concurrency } = jobs[name];
    // Payloads are parsed again when taken: what lies in the queue may be yesterday's.
    const worker = new Worker(queue, async (job) => handler.handle(payload.parse(job.data)), {
      ...this.options,
      concurrency,
      maxStalledCount: 1_000,
    });
    worker.on('error', (err) => this.trouble.report(queue, err));
    worker.on('failed', (job, err) => this.log.warn({ err, queue, jobId: job?.id }, 'a job failed'));
    return worker;
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
