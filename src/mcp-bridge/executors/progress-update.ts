import type { Clock } from '../../kernel/clock.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';

/** Each update is a stored event of its task, so their rate and number are limited. */
const everyMs = 1_000;
const maxUpdates = 100;

/**
 * Converts the progress notifications of a call to updates of its task; undefined for a notification that is too
 * early, over the limit, or without progress.
 */
export function progressOf(clock: Pick<Clock, 'elapsed'>): (params: JsonObject) => TaskUpdate | undefined {
  let last = -Infinity;
  let count = 0;
  return ({ progress, total, message }) => {
    const now = clock.elapsed();
    if (typeof progress !== 'number' || count >= maxUpdates || now - last < everyMs) return undefined;
    last = now;
    count++;
    const given = typeof message === 'string' && message !== '' ? message : undefined;
    const text = storableText(given ?? (typeof total === 'number' ? `${progress} of ${total}` : `${progress}`), 1_000);
    return {
      status: { state: 'TASK_STATE_WORKING', message: { parts: [{ text }] } },
      metadata: { progress, ...(typeof total === 'number' && { total }) },
    };
  };
}
