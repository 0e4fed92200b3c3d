import { Inject, Injectable } from '@nestjs/common';
import type { JobName } from '../../kernel/jobs.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { Metrics, type DueKind, type SweepOutcome } from '../telemetry/metrics.js';
import { AttemptFailed } from './job-run.js';
import { QueueState } from './queue-state.js';

/** Finds and runs due work of one kind. */
export interface DueWork<Item> {
  readonly kind: DueKind;
  /** Returns at most `limit` items, the oldest first. */
  readonly find: (limit: number) => Promise<Item[]>;
  readonly keyOf: (item: Item) => string;
  /**
   * True when the process that worked on the item is gone. Its job may still hold the key in the queue, so a new job
   * would wait behind it.
   */
  readonly isOrphan?: (item: Item) => boolean;
  /** Enqueues a job for the item; false when the queue did not accept it. */
  readonly ring: (item: Item) => Promise<boolean>;
  /**
   * Runs the item in this process. It claims the item first, because another process may have it by now. Returns an
   * outcome when the item was not started.
   */
  readonly run: (item: Item) => Promise<SweepOutcome | void>;
  /** True while an operator has paused the queue: then no work may bypass it. */
  readonly isHeld: () => Promise<boolean>;
}

const perSweep = 200;
const maxLocalRuns = 16;
/**
 * Limit for orphans. It is higher, because all work of a lost process becomes orphaned at once, and no other process
 * is notified.
 */
const maxLocalOrphans = 128;

/**
 * The sweep behind every queue. It enqueues due work. Orphans, and items that are still due at the next sweep, run in
 * this process, so neither a lost queue nor a stuck job delays them.
 */
export class DueSweep<Item> {
  private enqueued = new Set<string>();
  private readonly running = new Set<string>();

  constructor(
    private readonly work: DueWork<Item>,
    private readonly metrics: Metrics,
    private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const due = await this.work.find(perSweep);
    if (due.length === 0) return void (this.enqueued = new Set());
    const isHeld = await this.work.isHeld();
    const before = this.enqueued;
    // Items that were enqueued while the queue is paused had no chance yet; they get one when the queue is resumed.
    this.enqueued = new Set(isHeld ? [] : due.map((item) => this.work.keyOf(item)));
    this.count('selected', due.length);
    for (const item of due) {
      const isOrphan = this.work.isOrphan?.(item) ?? false;
      const isStuck = !isHeld && (isOrphan || before.has(this.work.keyOf(item)));
      if (isStuck && this.running.size < (isOrphan ? maxLocalOrphans : maxLocalRuns)) this.runLocally(item);
      else this.enqueueItems(item);
    }
  }

  private count(outcome: SweepOutcome, items = 1): void {
    this.metrics.swept.inc({ kind: this.work.kind, outcome }, items);
  }

  /** Enqueues the item without waiting for the queue, so a slow queue does not delay the sweep. */
  private enqueueItems(item: Item): void {
    void this.work.ring(item).then((isTaken) => this.count(isTaken ? 'dispatched' : 'dispatchFailed'));
  }

  private runLocally(item: Item): void {
    const key = this.work.keyOf(item);
    if (this.running.has(key)) return this.count('skipped');
    this.running.add(key);
    void this.work
      .run(item)
      .catch((err: unknown): SweepOutcome | void => {
        if (err instanceof AttemptFailed) return;
        this.log.warn({ err, due: key }, 'due work could not be done');
        return 'dispatchFailed';
      })
      .then((outcome) => this.count(outcome ?? 'dispatched'))
      .finally(() => this.running.delete(key));
  }
}

/** Creates the sweeps of this process. */
@Injectable()
export class DueSweeps {
  constructor(
    private readonly state: QueueState,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Creates the sweep behind the queue of a job. */
  behind<Item>(job: JobName, work: Omit<DueWork<Item>, 'isHeld'>): DueSweep<Item> {
    return new DueSweep({ ...work, isHeld: () => this.state.isHeld(job) }, this.metrics, this.log);
  }
}
