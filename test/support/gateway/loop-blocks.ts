// The type declarations are those of the oldest supported Node, which has no `threadCpuUsage`.
const { threadCpuUsage: usageOfThread } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };

/** Measures the longest task on the event loop of this process, in milliseconds of CPU time. Needs Node 24 or later. */
export class LoopBlocks {
  private readonly timer: NodeJS.Timeout;
  private worked = LoopBlocks.worked();
  private most = 0;

  constructor() {
    this.timer = setInterval(() => this.measure(), 1);
  }

  static get isPossible(): boolean {
    return usageOfThread !== undefined;
  }

  /** Milliseconds of CPU time of this thread alone. Parallel garbage collection and other processes do not count. */
  static worked(): number {
    const { user, system } = usageOfThread!();
    return (user + system) / 1_000;
  }

  /** Stops measuring and returns the longest task until now, in milliseconds. */
  end(): number {
    clearInterval(this.timer);
    this.measure();
    return this.most;
  }

  private measure(): void {
    const now = LoopBlocks.worked();
    this.most = Math.max(this.most, now - this.worked);
    this.worked = now;
  }
}

const yardstick = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, name: `name ${id}` })));
/** Milliseconds of CPU time that twelve readings of the yardstick take on an idle machine. */
const usualMs = 50;

/** Returns how many times longer this machine takes at present than an idle one, in CPU time; at least 1. */
function slowness(): number {
  const before = LoopBlocks.worked();
  for (let round = 0; round < 12; round++) JSON.parse(yardstick);
  return Math.max(1, (LoopBlocks.worked() - before) / usualMs);
}

/**
 * Returns the smallest of up to five measurements, and stops at the first one below `limit`. On a busy machine the same
 * work takes longer, also in CPU time: a measurement above the limit is divided by how much longer the yardstick takes.
 * Each measurement must repeat the work without cached results.
 */
export async function leastOf(limit: number, measure: (attempt: number) => number | Promise<number>): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < 5 && least >= limit; attempt++) {
    const measured = await measure(attempt);
    least = Math.min(least, measured < limit ? measured : measured / slowness());
  }
  return least;
}
