import type { ConnectionTimes } from './upstream-connection.types.js';

const firstMs = 1_000;
const mostMs = 60_000;
const jitter = 0.2;

/**
 * How long nobody tries after so many failures in a row: from one second, twice as long each time, a minute at most.
 * @param failures from 1. @param chance at least 0, less than 1.
 */
export function pauseAfter(failures: number, chance: number): number {
  const planned = Math.min(firstMs * 2 ** (failures - 1), mostMs);
  return Math.round(planned * (1 - jitter + 2 * jitter * chance));
}

/** How long connections to MCP servers may take, when nothing else is said. */
export const usualTimes: Required<ConnectionTimes> = {
  connectMs: 20_000,
  probeMs: 2_500,
  hushMs: 8_000,
  pauseMs: (failures) => pauseAfter(failures, Math.random()),
};
