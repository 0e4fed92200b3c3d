import { doubled } from '../../kernel/backoff.js';

const longestMs = 600_000;
const delay = { firstMs: 2_000, mostMs: longestMs };

/** Holds how often the tools of a server changed lately, and when they changed last (in milliseconds). */
export interface RefreshPace {
  readonly finds: number;
  readonly at: number;
}

/**
 * Records a poll that found changed tools. Each change counts for ten minutes. A poll without a change does not reset
 * the count: otherwise a server could alternate between a change and no change. Pure.
 */
export function afterChange(before: RefreshPace | undefined, now: number): RefreshPace {
  return { finds: 1 + (before ? remainingFinds(before, now) : 0), at: now };
}

/**
 * Returns how long the gateway ignores change notifications of a server, in milliseconds. The delay doubles after each
 * change that was found, up to ten minutes. The audit stores each change permanently, so a server must not cause audit
 * events at an unlimited rate. Pure.
 */
export function backoffOf(pace: RefreshPace | undefined, now: number): number {
  if (!pace) return 0;
  return Math.max(0, pace.at + doubled(pace.finds, delay) - now);
}

/** Returns whether all changes of the server are too old to count. Pure. */
export function isForgotten(pace: RefreshPace, now: number): boolean {
  return remainingFinds(pace, now) === 0 && backoffOf(pace, now) === 0;
}

function remainingFinds({ finds, at }: RefreshPace, now: number): number {
  return Math.max(0, finds - (now - at) / longestMs);
}
