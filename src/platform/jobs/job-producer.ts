import { Inject, Injectable } from '@nestjs/common';
import type { JobsOptions } from 'bullmq';
import type { JobName, JobPayload } from '../../kernel/jobs.js';
import type { Tx } from '../database/tx.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { QUEUES, type Queues } from './queues.js';

const enqueueBudgetMs = 50;
/** How many ended jobs the board still shows: a fixed number, and failed ones for a week at most. */
const retention = { removeOnComplete: { count: 200 }, removeOnFail: { count: 1_000, age: 7 * 86_400 } };

/**
 * Enqueues jobs that make a worker check a row again. It is best effort: when a job is lost, the sweeper finds the
 * row later.
 */
@Injectable()
export class JobProducer {
  constructor(
    @Inject(QUEUES) private readonly queues: Queues,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Enqueues after the commit of `tx`, or at once without one. For each key at most one job waits and one runs. */
  enqueue<Name extends JobName>(tx: Tx | undefined, name: Name, payload: JobPayload<Name>, key: string): void {
    if (tx) tx.afterCommit(() => void this.tryEnqueue(name, payload, { key }));
    else void this.tryEnqueue(name, payload, { key });
  }

  /**
   * Enqueues a job that starts in `delay` milliseconds. Until then the board shows it as delayed, and an operator may
   * promote it. One job for each key.
   */
  enqueueLater<Name extends JobName>(name: Name, payload: JobPayload<Name>, key: string, delay: number): void {
    void this.addJob(name, payload, {
      delay,
      deduplication: { id: `${key}-later`, replace: true, keepLastIfActive: true },
    });
  }

  /**
   * Returns true when the queue accepted the job within 50 ms.
   * @param how `key`: at most one job of a key waits and one runs. `line`: the priority class; a job of a higher class
   * is taken when no job of a lower class waits.
   */
  async tryEnqueue<Name extends JobName>(
    name: Name,
    payload: JobPayload<Name>,
    { key, line = 0 }: { readonly key?: string; readonly line?: number },
  ): Promise<boolean> {
    return this.addJob(name, payload, {
      ...(line > 0 && { priority: line }),
      ...(key !== undefined && { deduplication: { id: key, keepLastIfActive: true } }),
    });
  }

  private async addJob<Name extends JobName>(
    name: Name,
    payload: JobPayload<Name>,
    how: JobsOptions,
  ): Promise<boolean> {
    const queue = this.queues.get(name);
    if (!queue) return false;
    // The queue numbers its jobs itself. BullMQ silently ignores a job with an id that still exists.
    const added = queue.add(name, payload, { attempts: 1, keepLogs: 100, ...retention, ...how }).then(
      () => true,
      (err: unknown) => {
        this.log.warn({ err, job: name }, 'a job could not be enqueued; the sweeper will find the row');
        return false;
      },
    );
    return Promise.race([
      added,
      new Promise<boolean>((resolve) => setTimeout(resolve, enqueueBudgetMs, false).unref()),
    ]);
  }
}
