const jitter = 0.2;

/** Returns a delay that starts at `firstMs`, doubles with each further failure, and is at most `mostMs`. */
export function doubled(failures: number, { firstMs, mostMs }: { firstMs: number; mostMs: number }): number {
  return Math.min(mostMs, firstMs * 2 ** Math.max(0, failures - 1));
}

/**
 * Spreads a delay by up to 20 % in both directions, so that attempts that began together do not stay together.
 * @param chance random number, at least 0 and less than 1.
 */
export function spread(delay: number, chance: number): number {
  return delay * (1 - jitter + 2 * jitter * chance);
}

/**
 * Parses the header `Retry-After`, which holds seconds or a date (RFC 9110 section 10.2.3), to milliseconds from `now`;
 * undefined when it is neither.
 */
export function retryAfterMs(header: unknown, now: number): number | undefined {
  if (typeof header !== 'string') return undefined;
  if (/^\s*\d{1,9}\s*$/.test(header)) return Number(header) * 1_000;
  const date = /^[A-Za-z]{3,9},/.test(header) ? Date.parse(header) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
