import { setTimeout as wait } from 'node:timers/promises';

const firstPauseMs = 20;
/** The pauses grow up to this length: at 20 ms, waiting for slow work took a tenth of the suite's processor time. */
const longestPauseMs = 80;

/** Calls `ask` until the answer satisfies the condition. Throws with the last answer after `timeoutMs`. */
export async function eventually<Answer>(
  ask: () => Promise<Answer> | Answer,
  satisfies: (answer: Answer) => boolean,
  timeoutMs = 120_000,
): Promise<Answer> {
  const until = Date.now() + timeoutMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.2, longestPauseMs)) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > until)
      throw new Error(
        `the condition did not hold within ${timeoutMs} ms; the last answer was ${JSON.stringify(answer)}`,
      );
    await wait(pauseMs);
  }
}
