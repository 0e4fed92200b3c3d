import type { Health } from '../agents/health.js';

/** Current state of an agent: health, running calls, price. */
export interface Standing {
  readonly health: Health;
  /** Number of calls that run now, over all processes. */
  readonly active: number;
  /** Price of one task; undefined when the card states none. */
  readonly costPerTask?: number;
}

/** Numbers that the fit of an agent is multiplied by; each is in (0, 1]. */
export interface Factors {
  readonly health: number;
  readonly load: number;
  readonly cost: number;
}

export type Weight = { readonly ok: true; readonly factors: Factors } | { readonly ok: false; readonly reason: string };

/**
 * Numbers of running calls: from `soft` on the load factor is one half; from `hard` on the agent gets no more routed
 * calls.
 */
export const loadCaps = { soft: 5, hard: 10 };

const healthFactors = { healthy: 1, unknown: 0.8, degraded: 0.5 };

/**
 * Stage 2 of the choice: factors from health, load and price (RE-67, RE-68, RE-70). The price counts only against a
 * limit and reduces the factor to one half at most; an agent without a price is free.
 */
export function weigh({ health, active, costPerTask = 0 }: Standing, costLimit?: number): Weight {
  if (health === 'unreachable') return { ok: false, reason: 'it is unreachable' };
  if (active >= loadCaps.hard)
    return { ok: false, reason: `it has ${active} running calls; the maximum is ${loadCaps.hard}` };
  if (costLimit !== undefined && costPerTask > costLimit)
    return { ok: false, reason: `a task costs ${costPerTask}, the limit is ${costLimit}` };
  return {
    ok: true,
    factors: {
      health: healthFactors[health],
      load: active >= loadCaps.soft ? 0.5 : 1,
      cost: costLimit === undefined || costPerTask === 0 ? 1 : 1 - costPerTask / costLimit / 2,
    },
  };
}
