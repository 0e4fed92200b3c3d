import { systemClock } from '../../kernel/clock.js';

/** A server sends one notification per change; changes within this time are read together. */
const settleMs = 100;
/** Minimum time between two reads. It doubles with each read that was requested before the time was over. */
const minBetweenMs = 2_000;
const maxBetweenMs = 60_000;
/**
 * Delay of the read after an opening. The connection receives notifications from then on; the read finds earlier
 * changes.
 */
const afterOpenMs = 1_000;

const listChanges = new Set(['tools', 'resources', 'prompts'].map((list) => `notifications/${list}/list_changed`));

/**
 * Decides when the offer of a server is read again: once for several notifications, and after each opening of its
 * connection.
 */
export class RefreshDebounce {
  private next?: NodeJS.Timeout;
  private readAt = -Infinity;
  private betweenMs = minBetweenMs;

  constructor(private readonly read: () => void) {}

  connectionOpened(): void {
    this.schedule(afterOpenMs);
  }

  heard(method: string): void {
    if (listChanges.has(method)) this.schedule(settleMs);
  }

  stop(): void {
    clearTimeout(this.next);
    this.next = undefined;
  }

  /** Schedules a read, unless one is scheduled already: that one covers this notification too. */
  private schedule(inMs: number): void {
    if (this.next) return;
    const restMs = this.readAt + this.betweenMs - systemClock.elapsed();
    this.betweenMs = restMs > 0 ? Math.min(maxBetweenMs, 2 * this.betweenMs) : minBetweenMs;
    this.next = setTimeout(
      () => {
        this.next = undefined;
        this.readAt = systemClock.elapsed();
        this.read();
      },
      Math.max(inMs, restMs),
    ).unref();
  }
}
