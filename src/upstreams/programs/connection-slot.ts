import { RialtoError } from '../../kernel/errors.js';
import type { TurnWait } from './program-shares.js';
import type { SlotHolder, Slots } from './program-slots.js';

/** The slot of one connection to a program: taken before it is opened, given back when it ends. Without slots there is always room. */
export class ConnectionSlot {
  private giveBack?: () => void;
  private waiters = 0;
  private queue?: AbortController;

  constructor(private readonly slots: Slots | undefined) {}

  /** Counts somebody who waits for the connection: with the last of them it waits no longer for its slot. */
  async waitedFor<Result>(work: () => Promise<Result>): Promise<Result> {
    this.waiters++;
    try {
      return await work();
    } finally {
      if (--this.waiters === 0) this.queue?.abort();
    }
  }

  /** Counts a call against the share of its caller. Throws `unavailable` when that is used up, `canceled`, and what the work throws. */
  async usedBy<Result>(
    { caller, ...wait }: TurnWait & { readonly caller?: string },
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (!this.slots || caller === undefined) return work();
    const leave = await this.slots.enter(caller, this, wait);
    return work().finally(leave);
  }

  /** Throws `unavailable` where there is none in time, or nobody waits and none is free. */
  async take(holder: SlotHolder): Promise<void> {
    if (!this.slots) return;
    this.queue = new AbortController();
    try {
      const { signal } = this.queue;
      this.giveBack = await this.slots.take(holder, { signal, mayWait: this.waiters > 0 });
    } finally {
      this.queue = undefined;
    }
  }

  /** Why whoever waited did so in vain: undefined unless it was for a slot. */
  get refusal(): RialtoError | undefined {
    return this.queue && this.slots?.full();
  }

  /** Gives it back, or waits for none any more. */
  free(): void {
    this.queue?.abort();
    this.giveBack?.();
    this.giveBack = undefined;
  }

  /** Tells that the connection may be idle by now. */
  stirred(): void {
    this.slots?.stirred();
  }
}
