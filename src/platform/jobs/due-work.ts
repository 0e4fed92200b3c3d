import type { Logger } from '../telemetry/logger.js';
import type { DueKind, Metrics, SweepOutcome } from '../telemetry/metrics.js';
import { AttemptFailed } from './job-run.js';

/** How due work of one kind is found and done. */
export interface DueWork<Item> {
  readonly kind: DueKind;
  /** The oldest first, at most so many. */
  readonly find: (limit: number) => Promise<Item[]>;
  readonly keyOf: (item: Item) => string;
  /** Whoever did it is gone. The job of theirs may still hold the key of the queue, and a ring would wait behind it. */
  readonly isOrphan?: (item: Item) => boolean;
  /** Makes a worker look at it; false when the queue did not take the ring. */
  readonly ring: (item: Item) => Promise<boolean>;
  /** Does it here; claims first, for others may have it by now. Says when it was not begun. */
  readonly run: (item: Item) => Promise<SweepOutcome | void>;
  /** True while an operator holds the queue: then nothing is done past it. */
  readonly isHeld: () => Promise<boolean>;
}

const perSweep = 200;
const runsHere = 16;
/** Of those who were lost more: all that a process held are orphans at once, and nobody else is told. */
const orphansHere = 128;

/**
 * The sweep behind every queue: what is due is rung for; an orphan, and what is still due at the next look, is done here, so that
 * neither a lost queue nor a stuck ring holds it (reliability 4.2).
 */
export class DueSweep<Item> {
  private rung = new Set<string>();
  private readonly here = new Set<string>();

  constructor(
    private readonly work: DueWork<Item>,
    private readonly metrics: Metrics,
    private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const due = await this.work.find(perSweep);
    if (due.length === 0) return void (this.rung = new Set());
    const isHeld = await this.work.isHeld();
    const before = this.rung;
    // What was rung for while the queue is held had no chance yet: it has it once the queue goes on.
    this.rung = new Set(isHeld ? [] : due.map((item) => this.work.keyOf(item)));
    this.count('selected', due.length);
    for (const item of due) {
      const isOrphan = this.work.isOrphan?.(item) ?? false;
      const isStuck = !isHeld && (isOrphan || before.has(this.work.keyOf(item)));
      if (isStuck && this.here.size < (isOrphan ? orphansHere : runsHere)) this.runHere(item);
      else this.ring(item);
    }
  }

  private count(outcome: SweepOutcome, items = 1): void {
    this.metrics.swept.inc({ kind: this.work.kind, outcome }, items);
  }

  /** The queue has its time to take it; the next look does not wait for that. */
  private ring(item: Item): void {
    void this.work.ring(item).then((isTaken) => this.count(isTaken ? 'dispatched' : 'dispatchFailed'));
  }

  private runHere(item: Item): void {
    const key = this.work.keyOf(item);
    if (this.here.has(key)) return this.count('skipped');
    this.here.add(key);
    void this.work
      .run(item)
      .catch((err: unknown): SweepOutcome | void => {
        if (err instanceof AttemptFailed) return;
        this.log.warn({ err, due: key }, 'due work could not be done');
        return 'dispatchFailed';
      })
      .then((outcome) => this.count(outcome ?? 'dispatched'))
      .finally(() => this.here.delete(key));
  }
}
