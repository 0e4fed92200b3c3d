import { setTimeout as wait } from 'node:timers/promises';

/** Calls `ask` until the answer satisfies the condition. Throws with the last answer after `timeoutMs`. */
export async function eventually<Answer>(
  ask: () => Promise<Answer> | Answer,
  satisfies: (answer: Answer) => boolean,
  timeoutMs = 120_000,
): Promise<Answer> {
  for (const until = Date.now() + timeoutMs; ;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > until)
      throw new Error(
        `the condition did not hold within ${timeoutMs} ms; the last answer was ${JSON.stringify(answer)}`,
      );
    await wait(20);
  }
}
