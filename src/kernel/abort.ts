import { systemClock, type Clock } from './clock.js';

/**
 * Returns a signal that aborts after `waitMs` milliseconds or with the first of `signals`. Call `end` when the signal
 * is no longer needed: it clears the timer and the listeners. AbortSignal.any is not used, because it loses source
 * signals that have no other reference, above all timeouts (Node 20).
 */
export function timeoutSignal(
  waitMs: number,
  signals: readonly (AbortSignal | undefined)[],
): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, waitMs);
  for (const signal of signals) {
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  }
  const end = (): void => {
    clearTimeout(timer);
    for (const signal of signals) signal?.removeEventListener('abort', abort);
  };
  return { signal: controller.signal, end };
}

/**
 * Resolves or rejects as `work` does, unless `signal` aborts first: then rejects with `late()`. `work` is not stopped;
 * its result is ignored.
 */
export function raceSignal<Result>(signal: AbortSignal, work: Promise<Result>, late: () => Error): Promise<Result> {
  return new Promise((resolve, reject) => {
    const rejectLate = (): void => reject(late());
    if (signal.aborted) rejectLate();
    else signal.addEventListener('abort', rejectLate, { once: true });
    const removeListener = (): void => signal.removeEventListener('abort', rejectLate);
    void work.then(resolve, reject).finally(removeListener);
  });
}

/**
 * Runs work for at most `timeoutMs` milliseconds, and until the first of `signals` aborts; then rejects with `late()`.
 * The work gets the signal of both, and should stop with it.
 */
export async function withTimeout<Result>(
  timeoutMs: number,
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<Result>,
  late: () => Error,
): Promise<Result> {
  const { signal, end } = timeoutSignal(timeoutMs, signals);
  try {
    return await raceSignal(signal, work(signal), late);
  } finally {
    end();
  }
}

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
