import type { Factors } from './weight.js';

/** A source of random numbers, uniform in [0, 1). */
export type Chance = () => number;

/** An agent that can be chosen. */
export interface Candidate {
  /** Fit for the work, in [0, 1]. */
  readonly fit: number;
  readonly factors: Factors;
  /** Number of completed calls; `failures` is the number of failed ones. */
  readonly successes: number;
  readonly failures: number;
  /** Price of one task; 0 when the card states none. */
  readonly cost: number;
}

/**
 * Random draw for a candidate: the success rate, and the score that multiplies it with all other factors. Both are in
 * [0, 1].
 */
export interface Drawn {
  readonly sampled: number;
  readonly score: number;
}

/** Result of a choice: the index of the chosen candidate (-1 for none) and the draw of each. */
export interface Drawing {
  readonly best: number;
  readonly drawn: readonly Drawn[];
}

/** Chooses the candidate with the highest draw, the first of equal ones. */
export function choose(candidates: readonly Candidate[], chance: Chance): Drawing {
  const drawn = drawAll(candidates, chance);
  const best = drawn.reduce((leader, { score }, index) => (score > (drawn[leader]?.score ?? -1) ? index : leader), -1);
  return { best, drawn };
}

/**
 * Stage 3 of the choice: Thompson sampling. For each candidate it draws a success rate from the Beta posterior (with
 * a uniform prior). An agent with few calls is tried sometimes, and a failing agent less often (RE-71). The
 * same candidates in the same order with the same random numbers give the same draws.
 */
export function drawAll(candidates: readonly Candidate[], chance: Chance): Drawn[] {
  return candidates.map(({ fit, factors, successes, failures }) => {
    const sampled = betaSample(successes + 1, failures + 1, chance);
    return { sampled, score: fit * factors.health * factors.load * factors.cost * sampled };
  });
}

/** Returns whether a candidate costs less than `one` and is at least as good in fit, health, load and success. */
export function isCheaperEqual(other: Candidate, one: Candidate): boolean {
  return (
    other.cost < one.cost &&
    other.fit >= one.fit &&
    other.factors.health >= one.factors.health &&
    other.factors.load >= one.factors.load &&
    meanOf(other) >= meanOf(one)
  );
}

function meanOf({ successes, failures }: Candidate): number {
  return (successes + 1) / (successes + failures + 2);
}

/**
 * Returns a repeatable random source: the same seed, a whole number below 2^32, gives the same numbers (mulberry32,
 * public domain).
 */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * Draws a Beta-distributed number. Both parameters must be at least 1. If one is 1, as for most agents, the inverse of
 * the distribution gives the number; otherwise two Gamma-distributed numbers do, which takes several times as long.
 */
export function betaSample(alpha: number, beta: number, chance: Chance): number {
  if (beta === 1) return (1 - chance()) ** (1 / alpha);
  if (alpha === 1) return 1 - (1 - chance()) ** (1 / beta);
  const a = gammaSample(alpha, chance);
  return a / (a + gammaSample(beta, chance));
}

/**
 * Draws a Gamma-distributed number, for shapes of at least 1: Marsaglia and Tsang, A Simple Method for Generating
 * Gamma Variables (2000).
 */
function gammaSample(shape: number, chance: Chance): number {
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normalSample(chance);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - chance()) < (x * x) / 2 + d * (1 - v + Math.log(v))) return d * v;
  }
}

/** Draws a normally distributed number: Box and Muller. */
function normalSample(chance: Chance): number {
  const radius = Math.sqrt(-2 * Math.log(1 - chance()));
  return radius * Math.cos(2 * Math.PI * chance());
}
