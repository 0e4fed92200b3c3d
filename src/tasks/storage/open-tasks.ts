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

/** Who asks for nothing for so long is counted no longer, in milliseconds; its next task is let in uncounted. */
const rememberedMs = 60_000;
/** With fewer open tasks an org has no backlog, nor has a sender. */
export const backlogFrom = 32;

/** An org, and the `senderKey` of one of its callers. */
export interface Whose {
  readonly org: string;
  readonly sender: string;
}

/** How many tasks of whom are open, as far as a process knows without asking anybody (abuse case 36). Pure. */
export class OpenTasks {
  /** Of each org, and of everybody. */
  private readonly orgs = new Map<string, Tally>();
  private readonly senders = new Map<string, Tally>();

  constructor(private readonly most: { readonly perOrg: number; readonly all: number }) {}

  /** Whose limit is reached; undefined when an org may open one more. @param now of a clock that never steps back. */
  full(org: string, now: number): 'org' | 'all' | undefined {
    if (sum(tallyOf(this.orgs, org, now)) >= this.most.perOrg) return 'org';
    return sum(tallyOf(this.orgs, everybody, now)) >= this.most.all ? 'all' : undefined;
  }

  /** Who goes first: 0, then 1 of an org with a backlog, then 2 of the sender that has it. */
  lineOf({ org, sender }: Whose): number {
    if (!this.hasBacklog(org)) return 0;
    return sum(this.senders.get(sender)) >= backlogFrom ? 2 : 1;
  }

  /** One more, which is not stored yet. */
  opened(whose: Whose, now: number): void {
    tallyOf(this.senders, whose.sender, now);
    this.add(whose, { since: 1, underWay: 1 });
  }

  /** Of one that was opened here: a count sees it from now on, or nothing came of it. */
  arrived(whose: Whose): void {
    this.add(whose, { underWay: -1 });
  }

  /** Of one that was opened here: counted or not, it is no more. */
  ended(whose: Whose): void {
    this.add(whose, { since: -1 });
  }

  /**
   * Which orgs are to be counted, in which of them the senders too, and how to take the counts: what was opened while they were made, or had
   * no row before, stays on top.
   */
  toCount(now: number): { orgs: string[]; backlogs: string[]; take: (counts: ReadonlyMap<string, number>) => void } {
    for (const tallies of [this.orgs, this.senders])
      for (const [key, { askedAt }] of tallies) if (now - askedAt > rememberedMs) tallies.delete(key);
    const before = [...this.orgs, ...this.senders].map(
      ([key, tally]) => [key, tally, tally.since - tally.underWay] as const,
    );
    const take = (counts: ReadonlyMap<string, number>): void => {
      for (const [key, tally, since] of before) {
        tally.counted = counts.get(key) ?? 0;
        tally.since -= since;
      }
    };
    const orgs = [...this.orgs.keys()].filter((key) => key !== everybody);
    return { orgs, backlogs: orgs.filter((org) => this.hasBacklog(org)), take };
  }

  private hasBacklog(org: string): boolean {
    return sum(this.orgs.get(org)) >= backlogFrom;
  }

  private add({ org, sender }: Whose, { since = 0, underWay = 0 }: Partial<Pick<Tally, 'since' | 'underWay'>>): void {
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
