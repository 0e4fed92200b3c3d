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

/**
 * Stage 3 of the choice: Thompson sampling. For each contender a rate of success is drawn from its Beta posterior (from the uniform
 * prior), so that who is little known is tried now and then, and who fails is tried less (RE-71). Same contenders in the same
 * order and same chance: same draws.
 */
export function draw(contenders: readonly Contender[], chance: Chance): Drawn[] {
  return contenders.map(({ fit, factors, successes, failures }) => {
    const sampled = betaSample(successes + 1, failures + 1, chance);
    return { sampled, score: fit * factors.health * factors.load * factors.cost * sampled };
  });
}

/** The index of the best score, of the first among equals; -1 for none. */
export function bestOf(drawn: readonly Drawn[]): number {
  return drawn.reduce((best, { score }, index) => (best < 0 || score > drawn[best]!.score ? index : best), -1);
}

/**
 * Whether another contender costs less and is no worse in fit, health, load and success: who sets a limit wants the cheaper of equals
 * (RE-61), and chance has no say in that.
 */
export function isNeedlesslyDear(one: Contender, others: readonly Contender[]): boolean {
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
