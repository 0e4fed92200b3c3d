import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../../kernel/clock.js';

/** How long one piece after the other may go on before others have their turn. */
const sliceMs = 5;

/** Does work that yields between its pieces, and lets the event loop serve others among them: the longest piece is the longest wait. */
export async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (let begun = systemClock.elapsed(); ;) {
    const piece = work.next();
    if (systemClock.elapsed() - begun >= sliceMs) {
      // Twice: what answers a socket has its first turn before the loop looks at sockets again.
      await nextTurn();
      await nextTurn();
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
