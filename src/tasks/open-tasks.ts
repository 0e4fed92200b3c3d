/** Stands for the tasks of all orgs. */
export const everybody = 'all';

/** Tasks that are queued, worked on or put off: as counted last, and those opened here since, less those that ended here since. */
interface Tally {
  counted: number;
  since: number;
  /** Of these, what no count sees yet: it is on its way to its row. */
  underWay: number;
  askedAt: number;
}

/** An org that asks for nothing for so long is counted no longer, in milliseconds; its next task is let in uncounted. */
const rememberedMs = 60_000;
/** With fewer open tasks an org has no backlog. */
const backlogFrom = 32;

/** How many tasks of whom are open, as far as a process knows without asking anybody (abuse case 36). Pure. */
export class OpenTasks {
  private readonly tallies = new Map<string, Tally>();

  constructor(private readonly most: { readonly perOrg: number; readonly all: number }) {}

  /** Whose limit is reached; undefined when an org may open one more. @param now of a clock that never steps back. */
  full(org: string, now: number): 'org' | 'all' | undefined {
    if (this.tally(org, now) >= this.most.perOrg) return 'org';
    return this.tally(everybody, now) >= this.most.all ? 'all' : undefined;
  }

  /** Whether others go first. */
  hasBacklog(org: string): boolean {
    return sum(this.tallies.get(org)) >= backlogFrom;
  }

  /** One more, which is not stored yet. */
  opened(org: string): void {
    this.add(org, { since: 1, underWay: 1 });
  }

  /** Of one that was opened here: a count sees it from now on, or nothing came of it. */
  arrived(org: string): void {
    this.add(org, { underWay: -1 });
  }

  /** Of one that was opened here: counted or not, it is no more. */
  ended(org: string): void {
    this.add(org, { since: -1 });
  }

  /** Which orgs are to be counted, and how to take the count: what was opened while it was made, or had no row before, stays on top. */
  toCount(now: number): { orgs: string[]; take: (counts: ReadonlyMap<string, number>) => void } {
    for (const [key, { askedAt }] of this.tallies) if (now - askedAt > rememberedMs) this.tallies.delete(key);
    const before = new Map([...this.tallies].map(([key, { since, underWay }]) => [key, since - underWay]));
    const take = (counts: ReadonlyMap<string, number>): void => {
      for (const [key, since] of before) {
        const tally = this.tallies.get(key)!;
        tally.counted = counts.get(key) ?? 0;
        tally.since -= since;
      }
    };
    return { orgs: [...before.keys()].filter((key) => key !== everybody), take };
  }

  private add(org: string, { since = 0, underWay = 0 }: Partial<Pick<Tally, 'since' | 'underWay'>>): void {
    for (const key of [org, everybody]) {
      const tally = this.tallies.get(key);
      if (!tally) continue;
      tally.since += since;
      tally.underWay += underWay;
    }
  }

  private tally(key: string, now: number): number {
    const known = this.tallies.get(key) ?? { counted: 0, since: 0, underWay: 0, askedAt: now };
    known.askedAt = now;
    this.tallies.set(key, known);
    return sum(known);
  }
}

function sum(tally: Tally | undefined): number {
  return tally ? tally.counted + tally.since : 0;
}
