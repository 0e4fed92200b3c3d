/**
 * Calls that begin within this time of each other, in milliseconds, are parallel: none of them caused another one.
 */
export const besideMs = 20;

/**
 * Counts the open calls of each caller to each agent in this process. It detects circles of agents that drop the
 * lineage of a call: each round waits for the next one (abuse 37). Pure.
 */
export class NestedCalls {
  /** Number of calls by caller and agent, and by the time slot in which they began. */
  private readonly open = new Map<string, Map<number, number>>();

  /**
   * Creates a counter.
   * @param most maximum open calls of one caller to one agent that began one after the other.
   */
  constructor(private readonly most: number) {}

  /**
   * Counts a call until the returned function is called; undefined when too many calls are open.
   * @param now in milliseconds, of a monotonic clock.
   */
  countNestedCall(key: string, now: number): (() => void) | undefined {
    const slots = this.open.get(key) ?? new Map<number, number>();
    const slot = Math.floor(now / besideMs);
    if (!slots.has(slot) && slots.size >= this.most) return undefined;
    slots.set(slot, (slots.get(slot) ?? 0) + 1);
    this.open.set(key, slots);
    return () => {
      const left = slots.get(slot)! - 1;
      if (left > 0) slots.set(slot, left);
      else slots.delete(slot);
      if (slots.size === 0) this.open.delete(key);
    };
  }
}
