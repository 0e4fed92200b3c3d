/** Lets so many in at once; the others wait in their order. */
export class Turnstile {
  private inside = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  /** Nobody is in, and so nobody waits. */
  get isEmpty(): boolean {
    return this.inside === 0;
  }

  async pass<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.inside >= this.most) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.inside++;
    try {
      return await work();
    } finally {
      // Whoever comes next takes this place, so that nobody slips in between.
      const next = this.waiting.shift();
      if (next) next();
      else this.inside--;
    }
  }
}
