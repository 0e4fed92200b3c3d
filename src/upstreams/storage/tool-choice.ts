import type { Strategy } from '../upstream.types.js';

/** State of a server when one of several is chosen. */
export interface Load {
  /** Its connection failed last, and the gateway waits before it tries again. */
  readonly isResting: boolean;
  /** Number of running calls. */
  readonly calls: number;
}

/**
 * Returns the index of the chosen server. Servers with a failed connection are chosen only when all have failed. Pure.
 * @param turn number of earlier choices; selects the next server in turn, and one of several equally loaded servers.
 */
export function chooseIndex(loads: readonly Load[], strategy: Strategy, turn: number): number {
  const all = loads.map((load, place) => ({ ...load, place }));
  const working = all.filter(({ isResting }) => !isResting);
  const candidates = working.length > 0 ? working : all;
  const next = (among: typeof candidates): number => among[turn % among.length]!.place;
  switch (strategy) {
    case 'first':
      return candidates[0]!.place;
    case 'round-robin':
      return next(candidates);
    case 'least-loaded': {
      const least = Math.min(...candidates.map(({ calls }) => calls));
      return next(candidates.filter(({ calls }) => calls === least));
    }
  }
}
