import { systemClock, type Clock } from './clock.js';

/** A point in time that ends one call and all work that it causes. */
export class Deadline {
  private readonly endsAt: number;

  constructor(
    timeoutMs: number,
    private readonly clock: Clock = systemClock,
  ) {
    this.endsAt = clock.elapsed() + timeoutMs;
  }

  /** Milliseconds left, at least 0. */
  get leftMs(): number {
    return Math.max(0, this.endsAt - this.clock.elapsed());
  }

  /** Returns a deadline that is not later than this one. */
  within(timeoutMs: number): Deadline {
    return new Deadline(Math.min(timeoutMs, this.leftMs), this.clock);
  }
}
