import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../../kernel/clock.js';

/** How long one piece after the other may go on before others have their turn. */
const sliceMs = 5;

/** Lets others have their turn. Twice: what answers a socket has its first turn before the loop looks at sockets again. */
async function othersFirst(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** Does work that yields between its pieces, and lets the event loop serve others among them: the longest piece is the longest wait. */
export async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (let begun = systemClock.elapsed(); ;) {
    const piece = work.next();
    if (systemClock.elapsed() - begun >= sliceMs) {
      await othersFirst();
      begun = systemClock.elapsed();
    }
    // Also after the last piece: what follows it is work as well.
    if (piece.done) return piece.value;
  }
}

/** The same work without a pause. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const piece = work.next();
    if (piece.done) return piece.value;
  }
}

/** What small pieces of work that nobody coordinates may take together of one turn of the event loop. */
export class TurnBudget {
  private spentMs = 0;
  private ending?: Promise<void>;

  /** Undefined while there is something left; else until the next turn: who waited looks again. */
  get wait(): Promise<void> | undefined {
    return this.spentMs < sliceMs ? undefined : this.ending;
  }

  /** Does a piece, and counts what it took. */
  spend<Result>(piece: () => Result): Result {
    const begun = systemClock.elapsed();
    try {
      return piece();
    } finally {
      this.spentMs += systemClock.elapsed() - begun;
      this.ending ??= othersFirst().then(() => {
        this.spentMs = 0;
        this.ending = undefined;
      });
    }
  }
}
