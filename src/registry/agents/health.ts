export const healths = ['healthy', 'degraded', 'unreachable', 'unknown'] as const;
/** What is known of an agent's reachability (RE-55). */
export type Health = (typeof healths)[number];

/**
 * How an attempt to fetch a card ended. `invalid`: something answered, but not with a usable card. `failing`: the card is good, and the calls
 * of the agent fail.
 */
export type Attempt = 'ok' | 'unreachable' | 'invalid' | 'failing';

export interface HealthState {
  readonly health: Health;
  /** Failed attempts in a row. */
  readonly failures: number;
}

const failuresUntilUnreachable = 3;

/**
 * The state after an attempt. One asked for by a person is believed at once (RE-59); the background waits for three, and meanwhile an agent
 * that was never reached stays unknown.
 */
export function nextHealth(state: HealthState, attempt: Attempt, byHand: boolean): HealthState {
  if (attempt === 'ok') return { health: 'healthy', failures: 0 };
  if (attempt === 'failing') return { health: 'degraded', failures: 0 };
  const failures = state.failures + 1;
  if (attempt === 'invalid') return { health: 'degraded', failures };
  if (byHand || failures >= failuresUntilUnreachable) return { health: 'unreachable', failures };
  return { health: state.health === 'unknown' ? 'unknown' : 'degraded', failures };
}

const maxBackoffSeconds = 600;

/**
 * Seconds until the next refresh: the interval of a healthy agent, a backoff that starts short and doubles for a failing
 * one, both spread by ±20 %. `chance` is in [0, 1).
 */
export function refreshDelay(failures: number, intervalSeconds: number, chance: number): number {
  const base =
    failures === 0
      ? intervalSeconds
      : Math.min(maxBackoffSeconds, Math.max(2, intervalSeconds / 10) * 2 ** Math.min(failures - 1, 12));
  return base * (0.8 + 0.4 * chance);
}
