/** Calls that begin within so many milliseconds of one another were made side by side: none of them is behind another. */
export const besideMs = 20;

/**
 * The calls of each caller to each agent that this process waits for. A circle of agents that drop the lineage of a call shows only here: each
 * of its rounds waits for the next one (abuse 37). Pure.
 */
export class NestedCalls {
  /** By caller and agent: how many calls began in which stretch of time. */
  private readonly open = new Map<string, Map<number, number>>();

  /** @param most calls of one caller to one agent, begun one after the other, that may wait at once. */
  constructor(private readonly most: number) {}

  /** Counts a call until what it answers is called; undefined when too many wait. @param now in milliseconds, of a clock that never steps back. */
  enter(key: string, now: number): (() => void) | undefined {
    const stretches = this.open.get(key) ?? new Map<number, number>();
    const stretch = Math.floor(now / besideMs);
    if (!stretches.has(stretch) && stretches.size >= this.most) return undefined;
    stretches.set(stretch, (stretches.get(stretch) ?? 0) + 1);
    this.open.set(key, stretches);
    return () => {
      const left = stretches.get(stretch)! - 1;
      if (left > 0) stretches.set(stretch, left);
      else stretches.delete(stretch);
      if (stretches.size === 0) this.open.delete(key);
    };
  }
}
