import { doubled, spread } from '../../kernel/backoff.js';

export const healths = ['healthy', 'degraded', 'unreachable', 'unknown'] as const;
/** Reachability of an agent (RE-55). */
export type Health = (typeof healths)[number];

/**
 * Result of an attempt to fetch a card. `invalid`: there was an answer, but no usable card. `failing`: the card is
 * usable, and calls to the agent fail.
 */
export type Attempt = 'ok' | 'unreachable' | 'invalid' | 'failing';

export interface HealthState {
  readonly health: Health;
  /** Number of failed attempts in a row. */
  readonly failures: number;
}

const failuresUntilUnreachable = 3;

/**
 * Returns the state after an attempt. A manual attempt counts at once (RE-59). Background refreshes need three
 * failures in a row; until then only a healthy agent becomes degraded, and any other health stays.
 */
export function nextHealth(state: HealthState, attempt: Attempt, byHand: boolean): HealthState {
  if (attempt === 'ok') return { health: 'healthy', failures: 0 };
  if (attempt === 'failing') return { health: 'degraded', failures: 0 };
  const failures = state.failures + 1;
  if (attempt === 'invalid') return { health: 'degraded', failures };
  if (byHand || failures >= failuresUntilUnreachable) return { health: 'unreachable', failures };
  return { health: state.health === 'healthy' ? 'degraded' : state.health, failures };
}

const maxBackoffMs = 600_000;

/**
 * Returns the seconds until the next refresh: the interval for a healthy agent, else a backoff that starts short and
 * doubles with each failure. Both have a jitter of ±20 %. `chance` is in [0, 1).
 */
export function refreshDelay(failures: number, intervalSeconds: number, chance: number): number {
  if (failures === 0) return spread(intervalSeconds, chance);
  const firstMs = Math.max(2, intervalSeconds / 10) * 1_000;
  return spread(doubled(failures, { firstMs, mostMs: maxBackoffMs }), chance) / 1_000;
}
