import { systemClock } from '../../kernel/clock.js';

/** A server tells of each of its changes; they are read together. */
const settleMs = 100;
/** However often it says so; twice as long after each look that it asked for before that time was over. */
const betweenLooksMs = 2_000;
const longestBetweenMs = 60_000;
/** By then a new line hears of changes; those of the time before are looked for. */
const heardMs = 1_000;

const listChanges = new Set(['tools', 'resources', 'prompts'].map((list) => `notifications/${list}/list_changed`));

/** When it is looked over what a server has: once for all that it says of its changes, and after each opening of its line. */
export class RefreshDebounce {
  private next?: NodeJS.Timeout;
  private lookedAt = -Infinity;
  private betweenMs = betweenLooksMs;

  constructor(private readonly look: () => void) {}

  opened(): void {
    this.soon(heardMs);
  }

  heard(method: string): void {
    if (listChanges.has(method)) this.soon(settleMs);
  }

  stop(): void {
    clearTimeout(this.next);
    this.next = undefined;
  }

  /** What is said before the look is part of it. */
  private soon(inMs: number): void {
    if (this.next) return;
    const restMs = this.lookedAt + this.betweenMs - systemClock.elapsed();
    this.betweenMs = restMs > 0 ? Math.min(longestBetweenMs, 2 * this.betweenMs) : betweenLooksMs;
    this.next = setTimeout(
      () => {
        this.next = undefined;
        this.lookedAt = systemClock.elapsed();
        this.look();
      },
      Math.max(inMs, restMs),
    ).unref();
  }
}
