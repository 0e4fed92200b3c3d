import { performance } from 'node:perf_hooks';

/** The only place that reads the time. Leases and schedules use the database's clock instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some fixed moment: never steps back, finer than a millisecond. For durations. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };

/** Milliseconds of processor time that this process has used: on a busy machine less than those that passed. */
export function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
