import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../../kernel/clock.js';

/** How long pieces of work may run before other callbacks get their turn. */
const sliceMs = 5;

/**
 * Lets other callbacks run. It waits for two turns: the first turn after a socket callback comes before the loop
 * checks the sockets again.
 */
async function letOthersRun(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/**
 * Runs work that yields between its pieces, and lets the event loop serve others between them. Others wait at most
 * for the longest piece.
 */
export async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (let begun = systemClock.elapsed(); ;) {
    const piece = work.next();
    if (systemClock.elapsed() - begun >= sliceMs) {
      await letOthersRun();
      begun = systemClock.elapsed();
    }
    // Also after the last piece, because the code after it is work as well.
    if (piece.done) return piece.value;
  }
}

/** Runs work for one item after the other, and lets the event loop serve others between them. */
export async function eachInTurns<Item, Result>(
  items: Iterable<Item>,
  work: (item: Item) => Promise<Result> | Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let begun = systemClock.elapsed();
  for (const item of items) {
    results.push(await work(item));
    if (systemClock.elapsed() - begun < sliceMs) continue;
    await letOthersRun();
    begun = systemClock.elapsed();
  }
  return results;
}

/** Runs the same work without a pause. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const piece = work.next();
    if (piece.done) return piece.value;
  }
}

/** Limits the time that independent small pieces of work take together in one turn of the event loop. */
export class TurnBudget {
  private spentMs = 0;
  private ending?: Promise<void>;

  /**
   * Undefined while time is left; otherwise a promise that resolves at the next turn. The caller must check again
   * after it.
   */
  get wait(): Promise<void> | undefined {
    return this.spentMs < sliceMs ? undefined : this.ending;
  }

  /** Runs a piece and counts the time it took. */
  spend<Result>(piece: () => Result): Result {
    const begun = systemClock.elapsed();
    try {
      return piece();
    } finally {
      this.spentMs += systemClock.elapsed() - begun;
      this.ending ??= letOthersRun().then(() => {
        this.spentMs = 0;
        this.ending = undefined;
      });
    }
  }
}
