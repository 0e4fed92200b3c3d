import { hasShare } from '../../platform/fair-share.js';
import { senderKey, type Waiters } from '../storage/task-lease.store.js';
import type { StoredTask } from '../task.types.js';

/** Runs of an org that a process claims. Further tasks stay due, and other orgs and senders do not wait for them. */
const places = { all: 125, ofMember: 100 };

type Run = Pick<StoredTask, 'orgId' | 'principal'>;

/** Divides the runs that a process claims among orgs, and those of an org among its senders (abuse case 36). */
export class RunShares {
  private readonly orgs = new Map<string, Map<string, number>>();

  /** Takes a place until `giveBack`. Returns false when the org or the sender has its share. */
  take(run: Run): boolean {
    const runs = this.orgs.get(run.orgId) ?? new Map<string, number>();
    const own = runs.get(senderKey(run.orgId, run.principal)) ?? 0;
    if (hasShare(own, sumOf(runs), places)) return false;
    this.count(run, 1);
    return true;
  }

  giveBack(run: Run): void {
    this.count(run, -1);
  }

  /** Orgs and senders that have their share. */
  get saturated(): Waiters {
    const orgs: string[] = [];
    const senders: string[] = [];
    for (const [org, runs] of this.orgs) {
      const taken = sumOf(runs);
      if (taken >= places.all) orgs.push(org);
      else for (const [sender, own] of runs) if (hasShare(own, taken, places)) senders.push(sender);
    }
    return { orgs, senders };
  }

  private count({ orgId, principal }: Run, by: 1 | -1): void {
    const sender = senderKey(orgId, principal);
    const runs = this.orgs.get(orgId) ?? new Map<string, number>();
    const count = (runs.get(sender) ?? 0) + by;
    if (count > 0) this.orgs.set(orgId, runs.set(sender, count));
    else if (runs.delete(sender) && runs.size === 0) this.orgs.delete(orgId);
  }
}

function sumOf(runs: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of runs.values()) sum += count;
  return sum;
}
