/** Lets so many in at once; the others wait in their order, and behind them those who let others go first. */
export class Turnstile {
  private inside = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly behind: (() => void)[] = [];

  constructor(private readonly most: number) {}

  /** Nobody is in, and so nobody waits. */
  get isEmpty(): boolean {
    return this.inside === 0;
  }

  async pass<Value>(work: () => Promise<Value>, othersFirst = false): Promise<Value> {
    const line = othersFirst ? this.behind : this.waiting;
    if (this.inside >= this.most) await new Promise<void>((resolve) => line.push(resolve));
    else this.inside++;
    try {
      return await work();
    } finally {
      // Whoever comes next takes this place, so that nobody slips in between.
      const next = this.waiting.shift() ?? this.behind.shift();
      if (next) next();
      else this.inside--;
    }
  }
}
