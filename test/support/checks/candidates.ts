import type { Candidate } from '../../../src/registry/routing/choose.js';

/** Factors of a candidate that nothing prefers. */
export const evenFactors = { health: 1, load: 1, cost: 1 };

/** Returns a candidate without a record of earlier calls. */
export function candidate(more: Partial<Candidate> = {}): Candidate {
  return { fit: 1, factors: evenFactors, successes: 0, failures: 0, cost: 0, ...more };
}
