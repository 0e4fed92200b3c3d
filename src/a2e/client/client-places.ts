interface Waiter {
  readonly id: string;
  readonly enter: () => void;
}

/** The messages that the gateway works on for one socket, at most so many. Further ones wait here in their order. */
export class Places {
  private readonly taken = new Set<string>();
  private readonly waiting = new Set<Waiter>();

  constructor(private readonly most: number) {}

  /** Resolves when the message may be sent. A message whose signal aborts first leaves the queue, and this never resolves. */
  take(id: string, signal: AbortSignal): Promise<void> {
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

  /** Called when the reply to a message came, or the message could not be sent. */
  free(id: string): void {
    this.taken.delete(id);
    this.fill();
  }

  /** Called when the connection is lost: a new one has nothing to work on. */
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
