import { Semaphore } from '../../kernel/semaphore.js';

/** At most so many at work for one key; the others wait for their turn, in order. */
export class KeyedSemaphore {
  private readonly semaphores = new Map<string, Semaphore>();

  constructor(private readonly most: number) {}

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const turnstile = this.semaphores.get(key) ?? new Semaphore(this.most);
    this.semaphores.set(key, turnstile);
    try {
      return await turnstile.run(work);
    } finally {
      if (turnstile.isEmpty) this.semaphores.delete(key);
    }
  }
}
