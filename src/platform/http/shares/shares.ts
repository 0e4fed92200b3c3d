/** Whose a share is. */
export interface Payer {
  readonly principal: string;
  readonly org: string;
}

/** What may be taken at once, in bytes or in pieces. */
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
 * Shares of something scarce: of a principal, of its org, and of the process. Whoever has none gets one however large it is. Who finds no room
 * waits in the order of coming, and holds up nobody who does. Pure.
 */
export class Shares {
  private readonly used = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly limits: ShareLimits) {}

  /** Takes a share at once; undefined when there is no room. The result gives it back, once. */
  take(payer: Payer, amount: number): (() => void) | undefined {
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
      this.letIn();
    };
  }

  /** Takes a share as soon as there is room. `leave` gives up waiting. */
  wait(payer: Payer, amount: number, taken: (release: () => void) => void): { readonly leave: () => void } {
    const waiting = { payer, amount, taken };
    this.waiting.add(waiting);
    return { leave: () => void this.waiting.delete(waiting) };
  }

  /** Whose share has no room for so much more; undefined when all have. */
  full({ principal, org }: Payer, amount: number): ShareScope | undefined {
    const { limits } = this;
    if (isFull(this.usedBy(`principal ${org} ${principal}`), amount, limits.principal)) return 'principal';
    if (isFull(this.usedBy(`org ${org}`), amount, limits.org)) return 'org';
    return isFull(this.usedBy('process'), amount, limits.process) ? 'process' : undefined;
  }

  private usedBy(key: string): number {
    return this.used.get(key) ?? 0;
  }

  private letIn(): void {
    for (const one of this.waiting) {
      const release = this.take(one.payer, one.amount);
      if (!release) continue;
      this.waiting.delete(one);
      one.taken(release);
    }
  }
}

/** What counts the shares of a payer: of the principal, the org, and all. */
export function keysOf({ principal, org }: Payer): readonly string[] {
  return [`principal ${org} ${principal}`, `org ${org}`, 'process'];
}

function isFull(used: number, amount: number, limit: number): boolean {
  return used > 0 && used + amount > limit;
}
