import { systemClock, type Clock } from '../../kernel/clock.js';

/** A point in time that one call and all it causes must not pass. */
export class Deadline {
  private readonly endsAt: number;

  constructor(
    timeoutMs: number,
    private readonly clock: Clock = systemClock,
  ) {
    this.endsAt = clock.elapsed() + timeoutMs;
  }

  /** Milliseconds that are left, 0 when none are. */
  get leftMs(): number {
    return Math.max(0, this.endsAt - this.clock.elapsed());
  }

  /** A nearer deadline, never a later one. */
  within(timeoutMs: number): Deadline {
    return new Deadline(Math.min(timeoutMs, this.leftMs), this.clock);
  }
}
