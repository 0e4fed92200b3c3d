import type { JobsOptions, Queue } from 'bullmq';
import type { JobName, JobPayload } from '../../kernel/jobs.js';
import type { Tx } from '../database/tx.js';
import type { Logger } from '../telemetry/logger.js';

const enqueueBudgetMs = 50;
/** What the board still shows of ended jobs: by number, and the failed ones for a week at most. */
const kept = { removeOnComplete: { count: 200 }, removeOnFail: { count: 1_000, age: 7 * 86_400 } };

/** Rings for a worker: "look again at this row". Best effort; a lost ring costs time, the sweeper finds the row. */
export class JobProducer {
  constructor(
    private readonly queues: ReadonlyMap<JobName, Queue>,
    private readonly log: Logger,
  ) {}

  /** Rings after the commit of `tx`, without one at once. At most one job per key waits and one runs. */
  enqueue<Name extends JobName>(tx: Tx | undefined, name: Name, payload: JobPayload<Name>, key: string): void {
    if (tx) tx.afterCommit(() => void this.tryEnqueue(name, payload, key));
    else void this.tryEnqueue(name, payload, key);
  }

  /** Rings in so many milliseconds; until then the board shows a delayed job, which an operator may promote. One per key. */
  enqueueLater<Name extends JobName>(name: Name, payload: JobPayload<Name>, key: string, delay: number): void {
    void this.add(name, payload, {
      delay,
      deduplication: { id: `${key}-later`, replace: true, keepLastIfActive: true },
    });
  }

  /**
   * True when the queue took the ring within its budget.
   * @param line a ring of a higher one is taken when none waits in those before.
   */
  async tryEnqueue<Name extends JobName>(
    name: Name,
    payload: JobPayload<Name>,
    key: string,
    line = 0,
  ): Promise<boolean> {
    return this.add(name, payload, {
      ...(line > 0 && { priority: line }),
      deduplication: { id: key, keepLastIfActive: true },
    });
  }

  private async add<Name extends JobName>(name: Name, payload: JobPayload<Name>, how: JobsOptions): Promise<boolean> {
    const queue = this.queues.get(name);
    if (!queue) return false;
    // The queue numbers its jobs itself: an id of ours that is still kept would be ignored without a word.
    const added = queue.add(name, payload, { attempts: 1, keepLogs: 100, ...kept, ...how }).then(
      () => true,
      (err: unknown) => {
        this.log.warn({ err, job: name }, 'the queue did not take a ring; the sweeper will find the row');
        return false;
      },
    );
    return Promise.race([
      added,
      new Promise<boolean>((resolve) => setTimeout(resolve, enqueueBudgetMs, false).unref()),
    ]);
  }
}
