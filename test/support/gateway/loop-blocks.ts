// The types are those of the oldest Node that is supported.
const { threadCpuUsage: usageOfThread } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };

/** Finds the longest piece of work on the event loop of this process, in milliseconds of its own processor time. Node 24 and later. */
export class LoopBlocks {
  private readonly timer: NodeJS.Timeout;
  private worked = LoopBlocks.worked();
  private most = 0;

  constructor() {
    this.timer = setInterval(() => this.look(), 1);
  }

  static get isPossible(): boolean {
    return usageOfThread !== undefined;
  }

  /** Milliseconds of processor time of this thread alone: garbage collection beside it and a busy machine count for nothing. */
  static worked(): number {
    const { user, system } = usageOfThread!();
    return (user + system) / 1_000;
  }

  /** The longest until now; stops looking. */
  end(): number {
    clearInterval(this.timer);
    this.look();
    return this.most;
  }

  private look(): void {
    const now = LoopBlocks.worked();
    this.most = Math.max(this.most, now - this.worked);
    this.worked = now;
  }
}

/**
 * The least of up to five measurements, of which one below the limit is the last: beside other work the same piece takes longer, also
 * by the clock of the processor. Each must do the work anew: what is remembered costs nothing.
 */
export async function leastOf(limit: number, measure: (attempt: number) => number | Promise<number>): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < 5 && least >= limit; attempt++) least = Math.min(least, await measure(attempt));
  return least;
}
