import type { Violation } from './checker.js';

/** The violations that one part of a run found, and its figures. */
export interface ChaosResult {
  readonly violations: readonly Violation[];
  readonly figures: Readonly<Record<string, unknown>>;
}

/** Returns the given percentile of the values; 0 when there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
}
