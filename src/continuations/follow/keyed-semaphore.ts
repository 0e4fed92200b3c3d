import { Semaphore } from '../../kernel/semaphore.js';

/** Limits how many pieces of work of one key run at once; the others wait in order. */
export class KeyedSemaphore {
  private readonly semaphores = new Map<string, Semaphore>();

  constructor(private readonly most: number) {}

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const semaphore = this.semaphores.get(key) ?? new Semaphore(this.most);
    this.semaphores.set(key, semaphore);
    try {
      return await semaphore.run(work);
    } finally {
      if (semaphore.isEmpty) this.semaphores.delete(key);
    }
  }
}
