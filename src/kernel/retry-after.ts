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
