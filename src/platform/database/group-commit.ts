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
  /** Changes of one key never share a batch: one statement touches a row at most once. */
  readonly keyOf?: (change: Change) => string | undefined;
}

/**
 * Group commit: what waits while a statement is under way goes out as one statement, and each caller learns its own
 * outcome. A batch that fails is retried change by change, so one bad change harms none (performance.md, section 15).
 */
export class GroupCommit<Change, Outcome> {
  private waiting: Waiting<Change, Outcome>[] = [];
  private running = 0;
  private readonly lanes: number;
  private readonly maxBatch: number;
  private readonly laneOpensAt: number;
  private readonly keyOf?: (change: Change) => string | undefined;

  /** @param flush commits a batch and answers an outcome for each change, in order; rejects when nothing was committed. */
  constructor(
    private readonly flush: (batch: Change[]) => Promise<Outcome[]>,
    { lanes = 2, maxBatch = 64, laneOpensAt = maxBatch, keyOf }: GroupCommitOptions<Change> = {},
  ) {
    this.lanes = lanes;
    this.maxBatch = maxBatch;
    this.laneOpensAt = laneOpensAt;
    this.keyOf = keyOf;
  }

  /** Resolves when the change is committed, rejects when it is not. */
  commit(change: Change): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ change, resolve, reject });
      this.pump();
    });
  }

  /** One more lane opens only when it is worth it: two half-empty ones commit twice, and may wait for each other's rows. */
  private get mayFlush(): boolean {
    const enough = this.running === 0 ? 1 : this.laneOpensAt;
    return this.running < this.lanes && this.waiting.length >= enough;
  }

  private pump(): void {
    while (this.mayFlush) {
      this.running++;
      void this.settle(this.take()).finally(() => {
        this.running--;
        this.pump();
      });
    }
  }

  private take(): Waiting<Change, Outcome>[] {
    if (!this.keyOf) return this.waiting.splice(0, this.maxBatch);
    const [batch, left, keys]: [typeof this.waiting, typeof this.waiting, Set<string>] = [[], [], new Set()];
    for (const entry of this.waiting) {
      const key = this.keyOf(entry.change);
      const fits = batch.length < this.maxBatch && (key === undefined || !keys.has(key));
      if (key !== undefined) keys.add(key); // also of what is left, so that the order of one key stays
      (fits ? batch : left).push(entry);
    }
    this.waiting = left;
    return batch;
  }

  private async settle(batch: Waiting<Change, Outcome>[]): Promise<void> {
    try {
      const outcomes = await this.flush(batch.map(({ change }) => change));
      for (const [index, { resolve }] of batch.entries()) resolve(outcomes[index]!);
    } catch (error) {
      if (batch.length === 1) batch[0]!.reject(error);
      else await Promise.all(batch.map((entry) => this.settle([entry])));
    }
  }
}
