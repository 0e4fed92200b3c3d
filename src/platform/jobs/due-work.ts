import type { Logger } from '../telemetry/logger.js';
import { AttemptFailed } from './job-run.js';

/** How due work of one kind is found and done. */
export interface DueWork<Item> {
  /** The oldest first, at most so many. */
  readonly find: (limit: number) => Promise<Item[]>;
  readonly keyOf: (item: Item) => string;
  /** Whoever did it is gone. The job of theirs may still hold the key of the queue, and a ring would wait behind it. */
  readonly isOrphan?: (item: Item) => boolean;
  /** Makes a worker look at it. */
  readonly ring: (item: Item) => void;
  /** Does it here; claims first, for others may have it by now. */
  readonly run: (item: Item) => Promise<void>;
  /** True while an operator holds the queue: then nothing is done past it. */
  readonly isHeld: () => Promise<boolean>;
}

const perSweep = 200;
const runsHere = 16;

/**
 * The sweep behind every queue: what is due is rung for; an orphan, and what is still due at the next look, is done here, so that
 * neither a lost queue nor a stuck ring holds it (reliability 4.2).
 */
export class DueSweep<Item> {
  private rung = new Set<string>();
  private readonly here = new Set<string>();

  constructor(
    private readonly work: DueWork<Item>,
    private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const due = await this.work.find(perSweep);
    if (due.length === 0) return void (this.rung = new Set());
    const isHeld = await this.work.isHeld();
    const before = this.rung;
    this.rung = new Set(due.map((item) => this.work.keyOf(item)));
    for (const item of due) {
      const isStuck = !isHeld && (before.has(this.work.keyOf(item)) || this.work.isOrphan?.(item));
      if (!isStuck || this.here.size >= runsHere) this.work.ring(item);
      else this.runHere(item);
    }
  }

  private runHere(item: Item): void {
    const key = this.work.keyOf(item);
    if (this.here.has(key)) return;
    this.here.add(key);
    this.work
      .run(item)
      .catch((err: unknown) => {
        if (!(err instanceof AttemptFailed)) this.log.warn({ err, due: key }, 'due work could not be done');
      })
      .finally(() => this.here.delete(key));
  }
}
