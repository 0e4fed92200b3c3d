import type { Strategy } from '../upstream.types.js';

/** What is known of each server when one of them is chosen. */
export interface Load {
  /** It failed last, and is not tried just now. */
  readonly isResting: boolean;
  /** Calls that it has at work. */
  readonly calls: number;
}

/**
 * The place of the chosen one; those that rest are taken when all do. Pure. @param turn counts the choices that were made before: whose
 * turn it is, and who is taken of those that have equally little to do.
 */
export function choose(loads: readonly Load[], strategy: Strategy, turn: number): number {
  const all = loads.map((load, place) => ({ ...load, place }));
  const awake = all.filter(({ isResting }) => !isResting);
  const able = awake.length > 0 ? awake : all;
  const next = (among: typeof able): number => among[turn % among.length]!.place;
  switch (strategy) {
    case 'first':
      return able[0]!.place;
    case 'round-robin':
      return next(able);
    case 'least-loaded': {
      const least = Math.min(...able.map(({ calls }) => calls));
      return next(able.filter(({ calls }) => calls === least));
    }
  }
}
