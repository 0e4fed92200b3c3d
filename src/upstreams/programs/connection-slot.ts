import { RialtoError } from '../../kernel/errors.js';
import type { TurnWait } from './program-shares.js';
import type { SlotHolder, Slots } from './program-slots.js';

/**
 * Slot of one connection to a program. The connection takes it before it opens and gives it back when it ends. Without
 * `slots` there is no limit.
 */
export class ConnectionSlot {
  private giveBack?: () => void;
  private waiters = 0;
  private queue?: AbortController;

  constructor(private readonly slots: Slots | undefined) {}

  /** Runs work that waits for the connection. When the last waiter leaves, the connection stops waiting for a slot. */
  async waitedFor<Result>(work: () => Promise<Result>): Promise<Result> {
    this.waiters++;
    try {
      return await work();
    } finally {
      if (--this.waiters === 0) this.queue?.abort();
    }
  }

  /**
   * Counts a call against the share of its caller, until the returned function is called. Undefined when nothing limits
   * the call. Rejects with `unavailable` when the share is used up, and `canceled`.
   */
  enterCall(call: TurnWait & { readonly caller?: string }): Promise<() => void> | undefined {
    return call.caller === undefined ? undefined : this.slots?.enter(call.caller, this, call);
  }

  /** Takes a slot. Throws `unavailable` when no slot becomes free in time, or when none is free and no call waits. */
  async takeSlot(holder: SlotHolder): Promise<void> {
    if (!this.slots) return;
    this.queue = new AbortController();
    try {
      const { signal } = this.queue;
      this.giveBack = await this.slots.takeSlot(holder, { signal, mayWait: this.waiters > 0 });
    } finally {
      this.queue = undefined;
    }
  }

  /** Error for a caller that waited in vain for a slot; undefined when no slot is being waited for. */
  get refusal(): RialtoError | undefined {
    return this.queue && this.slots?.full();
  }

  /** Gives the slot back, or stops waiting for one. */
  free(): void {
    this.queue?.abort();
    this.giveBack?.();
    this.giveBack = undefined;
  }

  /** Notifies the slots that the connection may be idle now. */
  stirred(): void {
    this.slots?.stirred();
  }
}
