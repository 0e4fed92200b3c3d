/**
 * Limits how many pieces of work run at once. The others wait in order of arrival; a lower `priority` number goes
 * first.
 */
export class Semaphore {
  private running = 0;
  private readonly queues: (() => void)[][] = [];

  constructor(private readonly limit: number) {}

  /** True when no work runs, and therefore none waits. */
  get isEmpty(): boolean {
    return this.running === 0;
  }

  /**
   * Runs `work` as soon as a place is free.
   *
   * @param priority from 0, the most urgent.
   */
  async run<Value>(work: () => Promise<Value>, priority = 0): Promise<Value> {
    if (this.running >= this.limit) await new Promise<void>((resolve) => (this.queues[priority] ??= []).push(resolve));
    else this.running++;
    try {
      return await work();
    } finally {
      // The next waiting work takes over this place directly, so that new work cannot take it first.
      const next = this.queues.find((waiting) => waiting?.length)?.shift();
      if (next) next();
      else this.running--;
    }
  }
}
