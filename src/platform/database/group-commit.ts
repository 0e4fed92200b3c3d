import { isLineBroken, isRefusal } from './outage.js';

interface Waiting<Change, Outcome> {
  readonly change: Change;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommitOptions<Change> {
  /** How many batches may run at once. */
  readonly lanes?: number;
  /** How many waiting changes open one more lane. Default: a full batch. */
  readonly laneOpensAt?: number;
  readonly maxBatch?: number;
  /**
   * Changes with a common key never run at the same time: one statement touches a row at most once, and never waits
   * for a row that another of our statements has locked.
   */
  readonly keysOf?: (change: Change) => readonly string[];
  /** False: a batch with an unknown outcome is not sent again, because the callers check the outcome first. */
  readonly mayRepeat?: boolean;
}

/**
 * Group commit: changes that arrive in one turn of the event loop, or while a statement runs, are sent as one
 * statement, and each caller gets its own outcome. A batch that the server refuses is sent again in halves, in order,
 * so one bad change does not harm the others. A batch with a broken connection is sent once more, so one broken
 * connection does not fail its changes.
 */
export class GroupCommit<Change, Outcome> {
  private waiting: Waiting<Change, Outcome>[] = [];
  private running = 0;
  private isGathering = false;
  /** Keys of the running batches. Two lanes that wait for each other's rows would deadlock. */
  private readonly held = new Set<string>();
  private readonly lanes: number;
  private readonly maxBatch: number;
  private readonly laneOpensAt: number;
  private readonly keysOf: (change: Change) => readonly string[];
  private readonly mayRepeat: boolean;

  /**
   * @param flush commits a batch and returns an outcome for each change, in order. It rejects when nothing was
   * committed, or when the outcome is unknown.
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

  /** Resolves when the change is committed; rejects when it is not. */
  commit(change: Change): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ change, resolve, reject });
      this.gather();
    });
  }

  /**
   * Opens one more lane only for enough changes: two half-empty lanes commit twice, and may wait for each other's
   * rows.
   */
  private get mayFlush(): boolean {
    const enough = this.running === 0 ? 1 : this.laneOpensAt;
    return this.running < this.lanes && this.waiting.length >= enough;
  }

  /** Collects the changes of one turn of the event loop: a statement costs more than one more change in it. */
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
      const batch = this.takeBatch();
      if (batch.length === 0) return;
      const keys = batch.flatMap(({ change }) => this.keysOf(change));
      for (const key of keys) this.held.add(key);
      this.running++;
      void this.settleBatch(batch).finally(() => {
        for (const key of keys) this.held.delete(key);
        this.running--;
        this.gather();
      });
    }
  }

  private takeBatch(): Waiting<Change, Outcome>[] {
    const [batch, left, taken]: [typeof this.waiting, typeof this.waiting, Set<string>] = [[], [], new Set(this.held)];
    for (const entry of this.waiting) {
      const keys = this.keysOf(entry.change);
      const fits = batch.length < this.maxBatch && !keys.some((key) => taken.has(key));
      for (const key of keys) taken.add(key); // also for entries left behind: changes with one key keep their order
      (fits ? batch : left).push(entry);
    }
    this.waiting = left;
    return batch;
  }

  /** @param firstError the error that left the outcome of the first try unknown. */
  private async settleBatch(batch: Waiting<Change, Outcome>[], firstError?: unknown): Promise<void> {
    try {
      const outcomes = await this.flush(batch.map(({ change }) => change));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index]!);
    } catch (error) {
      if (isRefusal(error) && batch.length > 1) {
        const half = batch.length >> 1;
        await this.settleBatch(batch.slice(0, half), firstError);
        await this.settleBatch(batch.slice(half), firstError);
      } else if (this.mayRepeat && !firstError && isLineBroken(error)) {
        await this.settleBatch(batch, error);
      } else {
        for (const { reject } of batch) reject(firstError ?? error);
      }
    }
  }
}
