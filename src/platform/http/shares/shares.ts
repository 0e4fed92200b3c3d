import { hasShare } from '../../fair-share.js';

/** The principal and org that a share is charged to. */
export interface Payer {
  readonly principal: string;
  readonly org: string;
}

/** Limits of what may be taken at once, in bytes or in pieces: those of one principal or org while it is alone. */
export interface ShareLimits {
  readonly principal: number;
  readonly org: number;
  readonly process: number;
}

export type ShareScope = keyof ShareLimits;

interface Waiting {
  readonly payer: Payer;
  readonly amount: number;
  readonly taken: (release: () => void) => void;
}

/**
 * Divides a scarce resource between the orgs of the process, and the part of an org between its principals, so that
 * each leaves something to the next. A payer without a share gets one of any size. A payer that must wait keeps its
 * place in the order, and does not delay payers with free shares. It has no clock and no I/O.
 */
export class Shares {
  private readonly used = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly limits: ShareLimits) {}

  /**
   * Takes a share at once; undefined when there is no room. The returned function releases it; later calls do
   * nothing.
   */
  takeShare(payer: Payer, amount: number): (() => void) | undefined {
    if (this.full(payer, amount)) return undefined;
    const keys = keysOf(payer);
    for (const key of keys) this.used.set(key, this.usedBy(key) + amount);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      for (const key of keys) {
        const left = this.usedBy(key) - amount;
        if (left > 0) this.used.set(key, left);
        else this.used.delete(key);
      }
      this.admitWaiting();
    };
  }

  /** Takes a share as soon as there is room. `leave` ends the wait. */
  wait(payer: Payer, amount: number, taken: (release: () => void) => void): { readonly leave: () => void } {
    const waiting = { payer, amount, taken };
    this.waiting.add(waiting);
    return { leave: () => void this.waiting.delete(waiting) };
  }

  /** Returns the scope that has no room for the amount; undefined when all have. */
  full({ principal, org }: Payer, amount: number): ShareScope | undefined {
    const { limits } = this;
    const own = this.usedBy(`principal ${org} ${principal}`);
    const ofOrg = this.usedBy(`org ${org}`);
    if (hasShare(own, ofOrg, { all: limits.org, ofMember: limits.principal }, amount))
      return own > 0 ? 'principal' : 'org';
    if (hasShare(ofOrg, this.usedBy('process'), { all: limits.process, ofMember: limits.org }, amount))
      return ofOrg > 0 ? 'org' : 'process';
    return undefined;
  }

  private usedBy(key: string): number {
    return this.used.get(key) ?? 0;
  }

  private admitWaiting(): void {
    for (const one of this.waiting) {
      const release = this.takeShare(one.payer, one.amount);
      if (!release) continue;
      this.waiting.delete(one);
      one.taken(release);
    }
  }
}

/** Keys of the counters of a payer: for the principal, the org and the process. */
export function keysOf({ principal, org }: Payer): readonly string[] {
  return [`principal ${org} ${principal}`, `org ${org}`, 'process'];
}
