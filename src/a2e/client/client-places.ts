interface Waiter {
  readonly id: string;
  readonly enter: () => void;
}

/** Limits the messages that the gateway handles for one socket at a time. Further messages wait in a queue. */
export class Places {
  private readonly taken = new Set<string>();
  private readonly waiting = new Set<Waiter>();

  constructor(private readonly most: number) {}

  /**
   * Resolves when the message may be sent. A message with a signal that aborts first leaves the queue, and its
   * promise never resolves.
   */
  takePlace(id: string, signal: AbortSignal): Promise<void> {
    if (this.taken.size < this.most) {
      this.taken.add(id);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const waiter = { id, enter: resolve };
      this.waiting.add(waiter);
      signal.addEventListener('abort', () => this.waiting.delete(waiter), { once: true });
    });
  }

  /** Frees the slot of a message after its reply, or when it could not be sent. */
  freePlace(id: string): void {
    this.taken.delete(id);
    this.fill();
  }

  /** Frees all slots after the connection is lost: a new connection has no open messages. */
  clear(): void {
    this.taken.clear();
    this.fill();
  }

  private fill(): void {
    for (const waiter of this.waiting) {
      if (this.taken.size >= this.most) return;
      this.waiting.delete(waiter);
      this.taken.add(waiter.id);
      waiter.enter();
    }
  }
}
