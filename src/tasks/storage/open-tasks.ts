/** Key for the tasks of all orgs. */
export const everybody = 'all';

/**
 * Number of open tasks (queued, running or deferred): the last count, plus those opened by this process since, minus
 * those ended since.
 */
interface Tally {
  counted: number;
  since: number;
  /** Part of `since` that no count can see yet, because the row is not stored yet. */
  underWay: number;
  askedAt: number;
}

/**
 * Milliseconds after its last request until an org or sender is no longer counted; its next task is then accepted
 * without a count.
 */
const rememberedMs = 60_000;
/** An org or a sender with fewer open tasks has no backlog. */
export const backlogFrom = 32;

/** The origin of a task: an org, and the `senderKey` of one of its callers. */
export interface Whose {
  readonly org: string;
  readonly sender: string;
}

/**
 * Estimates the open tasks of each org and sender from this process's knowledge, without a query (abuse case 36). Pure.
 */
export class OpenTasks {
  /** Tallies by org, and one for all orgs. */
  private readonly orgs = new Map<string, Tally>();
  private readonly senders = new Map<string, Tally>();

  constructor(private readonly most: { readonly perOrg: number; readonly all: number }) {}

  /** The limit that is reached; undefined when the org may open one more task. @param now of a monotonic clock. */
  reachedLimit(org: string, now: number): 'org' | 'all' | undefined {
    if (sum(tallyOf(this.orgs, org, now)) >= this.most.perOrg) return 'org';
    return sum(tallyOf(this.orgs, everybody, now)) >= this.most.all ? 'all' : undefined;
  }

  /**
   * Priority of a task, lowest first: 0 for an org without a backlog, 1 for an org with one, 2 for a sender with one.
   */
  lineOf({ org, sender }: Whose): number {
    if (!this.hasBacklog(org)) return 0;
    return sum(this.senders.get(sender)) >= backlogFrom ? 2 : 1;
  }

  /** Adds a task that is not stored yet. */
  addUnstored(origin: Whose, now: number): void {
    tallyOf(this.senders, origin.sender, now);
    this.addCounts(origin, { since: 1, underWay: 1 });
  }

  /** Call for each task of `addUnstored` when its row is stored, or was not created: a count can see it from now on. */
  arrived(origin: Whose): void {
    this.addCounts(origin, { underWay: -1 });
  }

  /** Call for each task of `addUnstored` that is no longer open, whether a count has seen it or not. */
  ended(origin: Whose): void {
    this.addCounts(origin, { since: -1 });
  }

  /**
   * The orgs to count, those of them to count by sender too, and a function that applies the counts. Tasks that were
   * opened during the count, or had no row before it, stay added.
   */
  toCount(now: number): {
    orgs: string[];
    backlogs: string[];
    applyCounts: (counts: ReadonlyMap<string, number>) => void;
  } {
    for (const tallies of [this.orgs, this.senders])
      for (const [key, { askedAt }] of tallies) if (now - askedAt > rememberedMs) tallies.delete(key);
    const before = [...this.orgs, ...this.senders].map(
      ([key, tally]) => [key, tally, tally.since - tally.underWay] as const,
    );
    const applyCounts = (counts: ReadonlyMap<string, number>): void => {
      for (const [key, tally, since] of before) {
        tally.counted = counts.get(key) ?? 0;
        tally.since -= since;
      }
    };
    const orgs = [...this.orgs.keys()].filter((key) => key !== everybody);
    return { orgs, backlogs: orgs.filter((org) => this.hasBacklog(org)), applyCounts };
  }

  private hasBacklog(org: string): boolean {
    return sum(this.orgs.get(org)) >= backlogFrom;
  }

  private addCounts(
    { org, sender }: Whose,
    { since = 0, underWay = 0 }: Partial<Pick<Tally, 'since' | 'underWay'>>,
  ): void {
    for (const tally of [this.orgs.get(org), this.orgs.get(everybody), this.senders.get(sender)]) {
      if (!tally) continue;
      tally.since += since;
      tally.underWay += underWay;
    }
  }
}

function tallyOf(tallies: Map<string, Tally>, key: string, now: number): Tally {
  const known = tallies.get(key) ?? { counted: 0, since: 0, underWay: 0, askedAt: now };
  known.askedAt = now;
  tallies.set(key, known);
  return known;
}

function sum(tally: Tally | undefined): number {
  return tally ? tally.counted + tally.since : 0;
}
