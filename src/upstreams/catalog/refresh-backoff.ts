const shortestMs = 2_000;
const longestMs = 600_000;

/** How often a server had other tools lately, and when it had them last, in milliseconds. */
export interface RefreshPace {
  readonly finds: number;
  readonly at: number;
}

/**
 * After a look that found other tools. Each is forgotten after ten minutes, and not by a look that finds nothing: a server could have every
 * other look find nothing. Pure.
 */
export function afterChange(before: RefreshPace | undefined, now: number): RefreshPace {
  return { finds: 1 + (before ? left(before, now) : 0), at: now };
}

/**
 * For how long a server that says that it changed is not believed, in milliseconds: twice as long after each find, ten minutes at most. What
 * is found is kept for ever by the audit, so a server must not have us find something as often as it likes. Pure.
 */
export function backoffOf(pace: RefreshPace | undefined, now: number): number {
  if (!pace) return 0;
  return Math.max(0, pace.at + Math.min(longestMs, shortestMs * 2 ** (pace.finds - 1)) - now);
}

/** Whether nothing of it counts any more. Pure. */
export function isForgotten(pace: RefreshPace, now: number): boolean {
  return left(pace, now) === 0 && backoffOf(pace, now) === 0;
}

function left({ finds, at }: RefreshPace, now: number): number {
  return Math.max(0, finds - (now - at) / longestMs);
}
