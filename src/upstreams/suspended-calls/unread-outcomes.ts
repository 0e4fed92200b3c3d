/** Maximum number of stored outcomes, and of their characters. */
export interface UnreadLimits {
  readonly count: number;
  readonly weight: number;
}

interface Unread {
  readonly owner: string;
  readonly weight: number;
}

const whole: UnreadLimits = { count: 100, weight: 33_554_432 };
/** Large enough for one result of the maximum size. */
const perOwner: UnreadLimits = { count: 20, weight: 16_777_216 };

/**
 * Tracks which unread outcomes stay stored. The oldest are dropped first; an owner above its limit loses its own first.
 * Holds counts only, no results.
 */
export class UnreadOutcomes {
  /** Oldest first. */
  private readonly stored = new Map<string, Unread>();

  constructor(
    private readonly limits = whole,
    private readonly perOwnerLimits = perOwner,
  ) {}

  /** Adds an outcome. Returns the ids that must be dropped, possibly its own. */
  addOutcome(id: string, owner: string, weight: number): string[] {
    this.stored.set(id, { owner, weight });
    return [...this.dropAbove(this.perOwnerLimits, owner), ...this.dropAbove(this.limits)];
  }

  forget(id: string): void {
    this.stored.delete(id);
  }

  private dropAbove(limits: UnreadLimits, owner?: string): string[] {
    const counted = [...this.stored].filter(([, each]) => owner === undefined || each.owner === owner);
    let [count, weight] = [counted.length, counted.reduce((sum, [, each]) => sum + each.weight, 0)];
    const dropped: string[] = [];
    for (const [id, each] of counted) {
      if (count <= limits.count && weight <= limits.weight) break;
      count -= 1;
      weight -= each.weight;
      this.stored.delete(id);
      dropped.push(id);
    }
    return dropped;
  }
}
