import { Turnstile } from '../../kernel/turnstile.js';

/** At most so many at work for one key; the others wait for their turn, in order. */
export class Turns {
  private readonly turnstiles = new Map<string, Turnstile>();

  constructor(private readonly most: number) {}

  async take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const turnstile = this.turnstiles.get(key) ?? new Turnstile(this.most);
    this.turnstiles.set(key, turnstile);
    try {
      return await turnstile.pass(work);
    } finally {
      if (turnstile.isEmpty) this.turnstiles.delete(key);
    }
  }
}
