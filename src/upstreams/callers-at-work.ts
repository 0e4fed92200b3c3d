import type { Peer } from '../kernel/peer.js';

/** Whose calls a line serves just now, the latest last; undefined for a caller that is neither asked nor told. */
export class CallersAtWork {
  private readonly callers: (Peer | undefined)[] = [];
  private work = new AbortController();

  get isIdle(): boolean {
    return this.callers.length === 0;
  }

  get latest(): Peer | undefined {
    return this.callers.at(-1);
  }

  /** The one that there is; undefined for several. */
  get sole(): Peer | undefined {
    return this.callers.length === 1 ? this.callers[0] : undefined;
  }

  /** Aborts when the last of them is answered. */
  get over(): AbortSignal {
    return this.work.signal;
  }

  async during<Result>(caller: Peer | undefined, call: () => Promise<Result>): Promise<Result> {
    this.callers.push(caller);
    try {
      return await call();
    } finally {
      this.callers.splice(this.callers.indexOf(caller), 1);
      if (this.isIdle) this.rest();
    }
  }

  private rest(): void {
    this.work.abort();
    this.work = new AbortController();
  }
}
