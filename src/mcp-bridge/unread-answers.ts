import type { ServerResponse } from 'node:http';

const unreadMs = 30_000;
const maxUnread = 134_217_728;

/**
 * Answers that their clients have not read yet: let go after 30 s, and the oldest at once when all together pass 128 MiB, so that
 * clients that never read cannot fill the process (abuse case: slow readers).
 */
export class UnreadAnswers {
  private readonly lengths = new Map<ServerResponse, number>();
  private total = 0;

  /** `ms` after which an answer is let go; `max` bytes that may wait in all. */
  constructor(
    private readonly ms = unreadMs,
    private readonly max = maxUnread,
  ) {}

  /** For an answer that was written to its end; what the operating system took at once needs no watch. */
  watch(response: ServerResponse): void {
    const length = response.writableLength;
    if (length === 0 || response.destroyed) return;
    const timer = setTimeout(() => response.destroy(), this.ms).unref();
    response.once('close', () => {
      clearTimeout(timer);
      this.forget(response);
    });
    this.lengths.set(response, length);
    this.total += length;
    this.letOldestGo();
  }

  private letOldestGo(): void {
    for (const response of this.lengths.keys()) {
      if (this.total <= this.max) return;
      this.forget(response);
      response.destroy();
    }
  }

  private forget(response: ServerResponse): void {
    this.total -= this.lengths.get(response) ?? 0;
    this.lengths.delete(response);
  }
}

/** The one count of this process. */
export const unreadAnswers = new UnreadAnswers();

/** For an answer that someone else writes: lets its client go when bytes wait at two looks, 30 s apart, in a row. */
export function watchReader(response: ServerResponse, ms = unreadMs): void {
  let waiting = false;
  const timer = setInterval(() => {
    const waits = response.writableLength > 0;
    if (waiting && waits) response.destroy();
    waiting = waits;
  }, ms).unref();
  response.once('close', () => clearInterval(timer));
}
