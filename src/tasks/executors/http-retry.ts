import { retryAfterMs } from '../../kernel/backoff.js';

/** The result of an attempt to reach a service: with an HTTP status, or without one. */
export interface TryEnd {
  readonly status?: number;
  /** The header `Retry-After`. */
  readonly retryAfter?: string;
}

const pauses = [1_000, 5_000, 15_000, 30_000];
const longestPause = 60_000;
/** 4xx statuses that may be temporary; every other 4xx is final. */
const temporary = new Set([408, 425, 429]);

/**
 * Milliseconds until the next attempt; undefined when there is none. @param attempt the number of the attempt that
 * ended, from 1.
 */
export function pauseAfter(attempt: number, { status, retryAfter }: TryEnd, now: number): number | undefined {
  const pause = pauses[attempt - 1];
  const mayRetry = status === undefined || status >= 500 || temporary.has(status);
  return pause === undefined || !mayRetry ? undefined : Math.min(retryAfterMs(retryAfter, now) ?? pause, longestPause);
}
