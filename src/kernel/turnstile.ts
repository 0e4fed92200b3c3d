/** Lets so many in at once; the others wait in their order, those of a line behind all of the lines before. */
export class Turnstile {
  private inside = 0;
  private readonly lines: (() => void)[][] = [];

  constructor(private readonly most: number) {}

  /** Nobody is in, and so nobody waits. */
  get isEmpty(): boolean {
    return this.inside === 0;
  }

  /** @param line from 0. */
  async pass<Value>(work: () => Promise<Value>, line = 0): Promise<Value> {
    if (this.inside >= this.most) await new Promise<void>((resolve) => (this.lines[line] ??= []).push(resolve));
    else this.inside++;
    try {
      return await work();
    } finally {
      // Whoever comes next takes this place, so that nobody slips in between.
      const next = this.lines.find((waiting) => waiting?.length)?.shift();
      if (next) next();
      else this.inside--;
    }
  }
}
