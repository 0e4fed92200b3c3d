import { A2AClientError } from './client-errors.js';

/** Shortest and longest time, in milliseconds, that a client waits for a task (RI-51); the longest is the default. */
export const waitBounds = { least: 1_000, most: 300_000 } as const;

/**
 * Returns the time of a wait in milliseconds. Throws `invalid_params` for a time outside of the bounds, before anything
 * is sent: a wait that is too short gives up before its first poll, and one without an end holds its caller.
 */
export function waitOf(timeoutMs: number = waitBounds.most): number {
  const { least, most } = waitBounds;
  if (Number.isFinite(timeoutMs) && timeoutMs >= least && timeoutMs <= most) return timeoutMs;
  throw new A2AClientError(
    'invalid_params',
    `timeoutMs is ${timeoutMs}; a wait takes from ${least} to ${most} ms: to wait longer, call again with the taskId`,
  );
}
