/** Whose an answer is. */
export interface Payer {
  readonly principal: string;
  readonly org: string;
}

/** What may be under way at once, in bytes. */
export interface ShareLimits {
  readonly principal: number;
  readonly org: number;
  readonly process: number;
}

export type ShareScope = keyof ShareLimits;

interface Waiting {
  readonly payer: Payer;
  readonly bytes: number;
  readonly taken: (release: () => void) => void;
}

/**
 * Shares of what answers may hold of the memory until their readers have taken them: of a principal, of its org, and of the process.
 * Whoever has none under way gets one however large it is. Who finds no room waits in the order of coming, and holds up nobody who
 * does. Pure.
 */
export class AnswerShares {
  private readonly used = new Map<string, number>();
  private readonly waiting = new Set<Waiting>();

  constructor(private readonly limits: ShareLimits) {}

  /** Takes a share at once; undefined when there is no room. The result gives it back, once. */
  take(payer: Payer, bytes: number): (() => void) | undefined {
    if (this.full(payer, bytes)) return undefined;
    const keys = keysOf(payer);
    for (const key of keys) this.used.set(key, this.usedBy(key) + bytes);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      for (const key of keys) {
        const left = this.usedBy(key) - bytes;
        if (left > 0) this.used.set(key, left);
        else this.used.delete(key);
      }
      this.letIn();
    };
  }

  /** Takes a share as soon as there is room. `leave` gives up waiting. */
  wait(payer: Payer, bytes: number, taken: (release: () => void) => void): { readonly leave: () => void } {
    const waiting = { payer, bytes, taken };
    this.waiting.add(waiting);
    return { leave: () => void this.waiting.delete(waiting) };
  }

  /** Whose share has no room for so much more; undefined when all have. */
  full({ principal, org }: Payer, bytes: number): ShareScope | undefined {
    const { limits } = this;
    if (isFull(this.usedBy(`principal ${org} ${principal}`), bytes, limits.principal)) return 'principal';
    if (isFull(this.usedBy(`org ${org}`), bytes, limits.org)) return 'org';
    return isFull(this.usedBy('process'), bytes, limits.process) ? 'process' : undefined;
  }

  private usedBy(key: string): number {
    return this.used.get(key) ?? 0;
  }

  private letIn(): void {
    for (const one of this.waiting) {
      const release = this.take(one.payer, one.bytes);
      if (!release) continue;
      this.waiting.delete(one);
      one.taken(release);
    }
  }
}

function keysOf({ principal, org }: Payer): readonly string[] {
  return [`principal ${org} ${principal}`, `org ${org}`, 'process'];
}

function isFull(used: number, bytes: number, limit: number): boolean {
  return used > 0 && used + bytes > limit;
}
