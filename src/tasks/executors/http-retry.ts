import { retryAfterMs } from '../../kernel/retry-after.js';

/** How a try to reach a service ended: with a status, or without one. */
export interface TryEnd {
  readonly status?: number;
  /** The header `Retry-After`. */
  readonly retryAfter?: string;
}

const pauses = [1_000, 5_000, 15_000, 30_000];
const longestAsked = 60_000;
/** The service, or the way to it, is not well now; every other refusal is meant. */
const passing = new Set([408, 425, 429]);

/** Milliseconds until the next try; undefined when there is none. @param attempt the number of the try that ended, from 1. */
export function pauseAfter(attempt: number, { status, retryAfter }: TryEnd, now: number): number | undefined {
  const pause = pauses[attempt - 1];
  const mayPass = status === undefined || status >= 500 || passing.has(status);
  return pause === undefined || !mayPass ? undefined : Math.min(retryAfterMs(retryAfter, now) ?? pause, longestAsked);
}
