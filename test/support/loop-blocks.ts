// The types are those of the oldest Node that is supported.
const { threadCpuUsage: usageOfThread } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };

/** Finds the longest piece of work on the event loop of this process, in milliseconds of its own processor time. Node 24 and later. */
export class LoopBlocks {
  private readonly timer: NodeJS.Timeout;
  private worked = this.now();
  private most = 0;

  constructor() {
    this.timer = setInterval(() => this.look(), 1);
  }

  static get isPossible(): boolean {
    return usageOfThread !== undefined;
  }

  /** The longest until now; stops looking. */
  end(): number {
    clearInterval(this.timer);
    this.look();
    return this.most;
  }

  private look(): void {
    const now = this.now();
    this.most = Math.max(this.most, now - this.worked);
    this.worked = now;
  }

  /** Of this thread alone, so that garbage collection beside it and a busy machine count for nothing. */
  private now(): number {
    const { user, system } = usageOfThread!();
    return (user + system) / 1_000;
  }
}
