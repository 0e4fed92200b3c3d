/** How many may be kept, and how much of them: characters of their texts. */
export interface UnreadLimits {
  readonly count: number;
  readonly weight: number;
}

interface Unread {
  readonly owner: string;
  readonly weight: number;
}

const whole: UnreadLimits = { count: 100, weight: 33_554_432 };
/** One result of the largest size has room in it. */
const perOwner: UnreadLimits = { count: 20, weight: 16_777_216 };

/** Which outcomes are kept that nobody has read yet: the oldest go first, of an owner who has too much its own (M16). Pure but for its count. */
export class UnreadOutcomes {
  /** The oldest first. */
  private readonly kept = new Map<string, Unread>();

  constructor(
    private readonly most = whole,
    private readonly mostOfOne = perOwner,
  ) {}

  /** Keeps one more. Returns those that have to go for it, perhaps itself. */
  keep(id: string, owner: string, weight: number): string[] {
    this.kept.set(id, { owner, weight });
    return [...this.over(this.mostOfOne, owner), ...this.over(this.most)];
  }

  forget(id: string): void {
    this.kept.delete(id);
  }

  private over(limits: UnreadLimits, owner?: string): string[] {
    const own = [...this.kept].filter(([, each]) => owner === undefined || each.owner === owner);
    let [count, weight] = [own.length, own.reduce((sum, [, each]) => sum + each.weight, 0)];
    const gone: string[] = [];
    for (const [id, each] of own) {
      if (count <= limits.count && weight <= limits.weight) break;
      count -= 1;
      weight -= each.weight;
      this.kept.delete(id);
      gone.push(id);
    }
    return gone;
  }
}
