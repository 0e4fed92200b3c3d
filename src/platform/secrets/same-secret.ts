import { hash, timingSafeEqual } from 'node:crypto';

/** Compares a given secret with the expected one in constant time, also for different lengths. */
export function isSameSecret(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
}
