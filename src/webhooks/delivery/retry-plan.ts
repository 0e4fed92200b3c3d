import { retryAfterMs, spread } from '../../kernel/backoff.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';

/** The end of an attempt: with a status, or without one. */
export interface TryEnd {
  readonly status?: number;
  /** The header `Retry-After`. */
  readonly retryAfter?: string;
}

/** The consequence of an attempt. `closed`: given up, and nothing more is posted to this configuration. */
export type Verdict =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'retry'; readonly inMs: number }
  | { readonly kind: 'dead' }
  | { readonly kind: 'closed'; readonly reason: 'gone' | 'dead' | 'failing' };

/** Inputs of a verdict beside the attempt. */
export interface Circumstances {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** At least 0, less than 1. */
  readonly chance: number;
  /** Milliseconds in which every attempt to this configuration has failed. */
  readonly failingMs?: number;
}

const [second, minute, hour] = [1_000, 60_000, 3_600_000];
/** Ten attempts over 75.6 hours. */
const usualDelays = [
  5 * second,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];
/** Three attempts (RY-35). */
const reynDelays = [500, 2_000];
/** A receiver that has accepted nothing for this time counts as gone. */
const maxFailingMs = 120 * hour;

/** Number of attempts of a delivery. */
export function maxAttempts(format: PushFormat): number {
  return (format === 'reyn' ? reynDelays : usualDelays).length + 1;
}

/**
 * The verdict on an attempt. A redirect is a failure, and 410 closes the configuration. A receiver may ask for a delay
 * of up to twice the planned one.
 * @param attempt the number of the attempt that ended, from 1.
 */
export function verdictOf(
  format: PushFormat,
  attempt: number,
  end: TryEnd,
  { now, chance, failingMs = 0 }: Circumstances,
): Verdict {
  const { status = 0, retryAfter } = end;
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  if (status === 410) return { kind: 'closed', reason: 'gone' };
  if (failingMs >= maxFailingMs) return { kind: 'closed', reason: 'failing' };
  const isReyn = format === 'reyn';
  const delay = (isReyn ? reynDelays : usualDelays)[attempt - 1];
  const isRefused = isReyn && status >= 400 && status < 500;
  // A dead channel gets nothing more for the rest of its run (RY-36).
  if (delay === undefined || isRefused) return isReyn ? { kind: 'closed', reason: 'dead' } : { kind: 'dead' };
  const requestedMs = retryAfterMs(retryAfter, now) ?? 0;
  return { kind: 'retry', inMs: Math.round(Math.max(spread(delay, chance), Math.min(requestedMs, 2 * delay))) };
}
