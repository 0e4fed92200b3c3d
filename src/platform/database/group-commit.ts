import { isLineBroken, isRefusal } from './outage.js';

interface Waiting<Change, Outcome> {
  readonly change: Change;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommitOptions<Change> {
  /** Batches that may be under way at once. */
  readonly lanes?: number;
  /** How many changes open one more lane; a full batch unless said otherwise. */
  readonly laneOpensAt?: number;
  readonly maxBatch?: number;
  /** Changes that have a key in common are never under way together: one statement touches a row at most once, and waits for none of ours. */
  readonly keysOf?: (change: Change) => readonly string[];
  /** False: what nobody heard of is not sent again, for the callers look it up first. */
  readonly mayRepeat?: boolean;
}

/**
 * Group commit: what comes in one turn of the event loop, or waits while a statement is under way, goes out as one statement, and each
 * caller learns its own outcome. A batch that the server refuses is sent again in halves, in order, so one bad change harms none; one
 * whose line breaks is sent once more, so one bad line harms none (performance.md, section 15).
 */
export class GroupCommit<Change, Outcome> {
  private waiting: Waiting<Change, Outcome>[] = [];
  private running = 0;
  private isGathering = false;
  /** Keys of what is under way: whoever waited for a row in one lane while another lane waits for its own would wait for ever. */
  private readonly held = new Set<string>();
  private readonly lanes: number;
  private readonly maxBatch: number;
  private readonly laneOpensAt: number;
  private readonly keysOf: (change: Change) => readonly string[];
  private readonly mayRepeat: boolean;

  /**
   * @param flush commits a batch and answers an outcome for each change, in order; rejects when nothing was committed, or nobody heard
   * whether it was.
   */
  constructor(
    private readonly flush: (batch: Change[]) => Promise<Outcome[]>,
    {
      lanes = 2,
      maxBatch = 64,
      laneOpensAt = maxBatch,
      keysOf = () => [],
      mayRepeat = true,
    }: GroupCommitOptions<Change> = {},
  ) {
    this.lanes = lanes;
    this.maxBatch = maxBatch;
    this.laneOpensAt = laneOpensAt;
    this.keysOf = keysOf;
    this.mayRepeat = mayRepeat;
  }

  /** Resolves when the change is committed, rejects when it is not. */
  commit(change: Change): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ change, resolve, reject });
      this.gather();
    });
  }

  /** One more lane opens only when it is worth it: two half-empty ones commit twice, and may wait for each other's rows. */
  private get mayFlush(): boolean {
    const enough = this.running === 0 ? 1 : this.laneOpensAt;
    return this.running < this.lanes && this.waiting.length >= enough;
  }

  /** What is said in one turn of the event loop leaves together: a statement costs more than what one change adds to it. */
  private gather(): void {
    if (this.isGathering || !this.mayFlush) return;
    this.isGathering = true;
    setImmediate(() => {
      this.isGathering = false;
      this.pump();
    });
  }

  private pump(): void {
    while (this.mayFlush) {
      const batch = this.take();
      if (batch.length === 0) return;
      const keys = batch.flatMap(({ change }) => this.keysOf(change));
      for (const key of keys) this.held.add(key);
      this.running++;
      void this.settle(batch).finally(() => {
        for (const key of keys) this.held.delete(key);
        this.running--;
        this.gather();
      });
    }
  }

  private take(): Waiting<Change, Outcome>[] {
    const [batch, left, taken]: [typeof this.waiting, typeof this.waiting, Set<string>] = [[], [], new Set(this.held)];
    for (const entry of this.waiting) {
      const keys = this.keysOf(entry.change);
      const fits = batch.length < this.maxBatch && !keys.some((key) => taken.has(key));
      for (const key of keys) taken.add(key); // also of what is left, so that the order of one key stays
      (fits ? batch : left).push(entry);
    }
    this.waiting = left;
    return batch;
  }

  /** @param unheard why nobody heard what became of the batch before. */
  private async settle(batch: Waiting<Change, Outcome>[], unheard?: unknown): Promise<void> {
    try {
      const outcomes = await this.flush(batch.map(({ change }) => change));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index]!);
    } catch (error) {
      if (isRefusal(error) && batch.length > 1) {
        const half = batch.length >> 1;
        await this.settle(batch.slice(0, half), unheard);
        await this.settle(batch.slice(half), unheard);
      } else if (this.mayRepeat && !unheard && isLineBroken(error)) {
        await this.settle(batch, error);
      } else {
        for (const { reject } of batch) reject(unheard ?? error);
      }
    }
  }
}
