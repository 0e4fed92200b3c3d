import type { ConnectionTimes } from './upstream-connection.types.js';

const firstMs = 1_000;
const mostMs = 60_000;
const jitter = 0.2;

/**
 * Returns the delay before the next connection attempt, in milliseconds: one second first, doubled after each failure,
 * one minute at most, with jitter.
 * @param failures number of failures in a row, from 1.
 * @param chance random number, at least 0 and less than 1.
 */
export function pauseAfter(failures: number, chance: number): number {
  const planned = Math.min(firstMs * 2 ** (failures - 1), mostMs);
  return Math.round(planned * (1 - jitter + 2 * jitter * chance));
}

/** Default timeouts of connections to MCP servers. */
export const usualTimes: Required<ConnectionTimes> = {
  connectMs: 20_000,
  probeMs: 2_500,
  hushMs: 8_000,
  pauseMs: (failures) => pauseAfter(failures, Math.random()),
};
