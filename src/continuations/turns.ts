/** At most so many at work for one key; the others wait for their turn, in order. */
export class Turns {
  private readonly taken = new Map<string, number>();
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly most: number) {}

  async take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const taken = this.taken.get(key) ?? 0;
    if (taken >= this.most) {
      const queue = this.waiting.get(key) ?? [];
      this.waiting.set(key, queue);
      await new Promise<void>((resolve) => queue.push(resolve)); // whoever leaves hands over its place
    } else this.taken.set(key, taken + 1);
    try {
      return await work();
    } finally {
      this.leave(key);
    }
  }

  private leave(key: string): void {
    const queue = this.waiting.get(key);
    const next = queue?.shift();
    if (queue?.length === 0) this.waiting.delete(key);
    if (next) return next();
    const taken = this.taken.get(key)! - 1;
    if (taken === 0) this.taken.delete(key);
    else this.taken.set(key, taken);
  }
}
