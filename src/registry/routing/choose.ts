import type { Factors } from './weight.js';

/** A source of chance: uniform in [0, 1). */
export type Chance = () => number;

/** An agent that may be chosen. */
export interface Contender {
  /** In [0, 1]. */
  readonly fit: number;
  readonly factors: Factors;
  /** Calls that it completed, and that it failed. */
  readonly successes: number;
  readonly failures: number;
  /** Price of one task; 0 when none is stated. */
  readonly cost: number;
}

/** What was drawn for a contender: its rate of success, and that weighed by all else; both in [0, 1]. */
export interface Drawn {
  readonly sampled: number;
  readonly score: number;
}

/** Who was chosen, -1 for nobody, and by contender what was drawn; undefined for one that is needlessly dear. */
export interface Drawing {
  readonly best: number;
  readonly drawn: readonly (Drawn | undefined)[];
}

/**
 * Stage 3 of the choice: Thompson sampling. For each contender a rate of success is drawn from its Beta posterior (from the uniform
 * prior), so that who is little known is tried now and then, and who fails is tried less (RE-71). Same contenders in the same order
 * and same chance: same choice. `thrifty`: of equals the cheaper one, and chance has no say in that (RE-61).
 */
export function choose(contenders: readonly Contender[], chance: Chance, { thrifty = false } = {}): Drawing {
  const drawn = contenders.map((one) =>
    thrifty && isNeedlesslyDear(one, contenders) ? undefined : drawFor(one, chance),
  );
  const best = drawn.reduce((leader, lot, index) => {
    const score = drawn[leader]?.score ?? -1;
    return lot && lot.score > score ? index : leader;
  }, -1);
  return { best, drawn };
}

function drawFor({ fit, factors, successes, failures }: Contender, chance: Chance): Drawn {
  const sampled = betaSample(successes + 1, failures + 1, chance);
  return { sampled, score: fit * factors.health * factors.load * factors.cost * sampled };
}

/** Whether another one costs less and is no worse in fit, health, load and success. */
function isNeedlesslyDear(one: Contender, others: readonly Contender[]): boolean {
  return others.some(
    (other) =>
      other.cost < one.cost &&
      other.fit >= one.fit &&
      other.factors.health >= one.factors.health &&
      other.factors.load >= one.factors.load &&
      meanOf(other) >= meanOf(one),
  );
}

function meanOf({ successes, failures }: Contender): number {
  return (successes + 1) / (successes + failures + 2);
}

/** Chance that repeats itself: the same seed, a whole number below 2^32, the same numbers (mulberry32, public domain). */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A Beta-distributed number from two Gamma-distributed ones; both parameters at least 1. */
export function betaSample(alpha: number, beta: number, chance: Chance): number {
  const a = gammaSample(alpha, chance);
  return a / (a + gammaSample(beta, chance));
}

/** Marsaglia and Tsang, A Simple Method for Generating Gamma Variables (2000); for shapes of at least 1. */
function gammaSample(shape: number, chance: Chance): number {
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normalSample(chance);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - chance()) < (x * x) / 2 + d * (1 - v + Math.log(v))) return d * v;
  }
}

/** Box and Muller. */
function normalSample(chance: Chance): number {
  const radius = Math.sqrt(-2 * Math.log(1 - chance()));
  return radius * Math.cos(2 * Math.PI * chance());
}
