import { systemClock } from '../kernel/clock.js';
import type { Json, JsonObject } from '../kernel/json.js';

const firstBeatMs = 1_000;
const beatMs = 5_000;

/**
 * Runs a call and says now and then that it is still going on, when its caller asked to be told: clients give up on silence,
 * and each word resets their clock. `progress` is the seconds so far; it only grows.
 */
export async function withHeartbeat<Result>(
  token: Json | undefined,
  notify: (progress: JsonObject) => void,
  work: () => Promise<Result>,
): Promise<Result> {
  if (typeof token !== 'string' && typeof token !== 'number') return work();
  const startedAt = systemClock.elapsed();
  const beat = (): void => {
    notify({
      progressToken: token,
      progress: Math.round((systemClock.elapsed() - startedAt) / 10) / 100,
      message: 'the agent is still working',
    });
    timer = setTimeout(beat, beatMs);
  };
  let timer = setTimeout(beat, firstBeatMs);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
