import { setTimeout as wait } from 'node:timers/promises';

/** Asks again until the answer satisfies; throws with the last answer when it does not in time. */
export async function eventually<Answer>(
  ask: () => Promise<Answer> | Answer,
  satisfies: (answer: Answer) => boolean,
  timeoutMs = 60_000,
): Promise<Answer> {
  for (const until = Date.now() + timeoutMs; ;) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    if (Date.now() > until) throw new Error(`waited in vain; the last answer was ${JSON.stringify(answer)}`);
    await wait(20);
  }
}
