/** Lets so many in at once; the others wait in their order, those of a line behind all of the lines before. */
export class Semaphore {
  private running = 0;
  private readonly queues: (() => void)[][] = [];

  constructor(private readonly most: number) {}

  /** Nobody is in, and so nobody waits. */
  get isEmpty(): boolean {
    return this.running === 0;
  }

  /** @param line from 0. */
  async run<Value>(work: () => Promise<Value>, line = 0): Promise<Value> {
    if (this.running >= this.most) await new Promise<void>((resolve) => (this.queues[line] ??= []).push(resolve));
    else this.running++;
    try {
      return await work();
    } finally {
      // Whoever comes next takes this place, so that nobody slips in between.
      const next = this.queues.find((waiting) => waiting?.length)?.shift();
      if (next) next();
      else this.running--;
    }
  }
}
