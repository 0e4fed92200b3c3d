import type { Health } from '../agents/health.js';

/** How an agent is now: reachability, running calls, price. */
export interface Standing {
  readonly health: Health;
  /** Calls that run at this moment, of all processes. */
  readonly active: number;
  /** Price of one task, when the card states one. */
  readonly costPerTask?: number;
}

/** What the fit of an agent is multiplied by; each in (0, 1]. */
export interface Factors {
  readonly health: number;
  readonly load: number;
  readonly cost: number;
}

export type Weight = { readonly ok: true; readonly factors: Factors } | { readonly ok: false; readonly reason: string };

/** Calls from which an agent counts half, and from which it gets no more of them. */
export const loadCaps = { soft: 5, hard: 10 };

const healthFactors = { healthy: 1, unknown: 0.8, degraded: 0.5 };

/**
 * Stage 2 of the choice: what health, load and price make of an agent (RE-67, RE-68, RE-70). A price counts against a limit alone: up to
 * half for one that exhausts it; an agent that states none is free.
 */
export function weigh({ health, active, costPerTask = 0 }: Standing, costLimit?: number): Weight {
  if (health === 'unreachable') return { ok: false, reason: 'it is unreachable' };
  if (active >= loadCaps.hard)
    return { ok: false, reason: `it has ${active} calls running, ${loadCaps.hard} are the most` };
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
