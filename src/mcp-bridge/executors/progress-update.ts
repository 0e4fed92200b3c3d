import type { Clock } from '../../kernel/clock.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';

/** Each is an event of its task, kept as long as that. */
const everyMs = 1_000;
const most = 100;

/** What an MCP server tells of a call in turn as updates of its task; undefined for what comes too soon, too often, or says nothing. */
export function progressOf(clock: Pick<Clock, 'elapsed'>): (params: JsonObject) => TaskUpdate | undefined {
  let last = -Infinity;
  let count = 0;
  return ({ progress, total, message }) => {
    const now = clock.elapsed();
    if (typeof progress !== 'number' || count >= most || now - last < everyMs) return undefined;
    last = now;
    count++;
    const said = typeof message === 'string' && message !== '' ? message : undefined;
    const text = storableText(said ?? (typeof total === 'number' ? `${progress} of ${total}` : `${progress}`), 1_000);
    return {
      status: { state: 'TASK_STATE_WORKING', message: { parts: [{ text }] } },
      metadata: { progress, ...(typeof total === 'number' && { total }) },
    };
  };
}
