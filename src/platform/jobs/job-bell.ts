import type { Queue } from 'bullmq';
import { jobs, type JobName, type JobPayload } from '../../kernel/jobs.js';
import type { Tx } from '../database/tx.js';
import type { Logger } from '../telemetry/logger.js';

const ringBudgetMs = 50;

/** Rings for a worker: "look again at this row". Best effort; a lost ring costs time, the sweeper finds the row. */
export class JobBell {
  constructor(
    private readonly queues: ReadonlyMap<JobName, Queue>,
    private readonly log: Logger,
  ) {}

  /** Rings after the commit of `tx`, without one at once. At most one job per key waits and one runs. */
  ring<Name extends JobName>(tx: Tx | undefined, name: Name, payload: JobPayload<Name>, key: string): void {
    if (tx) tx.afterCommit(() => void this.send(name, payload, key));
    else void this.send(name, payload, key);
  }

  /** True when the queue took the ring within its budget. */
  async send<Name extends JobName>(name: Name, payload: JobPayload<Name>, key: string): Promise<boolean> {
    const queue = this.queues.get(name);
    if (!queue) return false;
    const added = queue
      .add(jobs[name].queue, payload, {
        attempts: 1,
        deduplication: { id: key, keepLastIfActive: true },
        removeOnComplete: { count: 200 },
        removeOnFail: { count: 1_000 },
      })
      .then(
        () => true,
        (err: unknown) => {
          this.log.warn({ err, job: name }, 'the queue did not take a ring; the sweeper will find the row');
          return false;
        },
      );
    return Promise.race([added, new Promise<boolean>((resolve) => setTimeout(resolve, ringBudgetMs, false).unref())]);
  }
}
