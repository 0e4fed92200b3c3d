import { performance } from 'node:perf_hooks';

/** The only place that reads the time. Leases and schedules use the database's clock instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some fixed moment: never steps back, finer than a millisecond. For durations. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };
