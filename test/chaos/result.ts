import type { Violation } from './checker.js';

/** What one part of a run found, and its figures to print. */
export interface ChaosResult {
  readonly violations: readonly Violation[];
  readonly figures: Readonly<Record<string, unknown>>;
}

/** The value below which this share of all lies; 0 when there is none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
}
