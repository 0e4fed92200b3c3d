import { performance } from 'node:perf_hooks';

/** The only code that reads the time. Leases and schedules use the clock of the database instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since a fixed moment, for durations: never goes back, and is finer than a millisecond. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/** Processor time used by this process, in milliseconds. On a busy machine it is less than the time that passed. */
export function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
