import { doubled, spread } from '../../kernel/backoff.js';
import type { ConnectionTimes } from './upstream-connection.types.js';

const limits = { firstMs: 1_000, mostMs: 60_000 };

/**
 * Returns the delay before the next connection attempt, in milliseconds: one second first, doubled after each failure,
 * one minute at most, with jitter.
 * @param failures number of failures in a row, from 1.
 * @param chance random number, at least 0 and less than 1.
 */
export function pauseAfter(failures: number, chance: number): number {
  return Math.round(spread(doubled(failures, limits), chance));
}

/** Default timeouts of connections to MCP servers. */
export const usualTimes: Required<ConnectionTimes> = {
  connectMs: 20_000,
  probeMs: 2_500,
  hushMs: 8_000,
  pauseMs: (failures) => pauseAfter(failures, Math.random()),
};
