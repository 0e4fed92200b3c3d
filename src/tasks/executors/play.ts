import { setTimeout as sleep } from 'node:timers/promises';
import type { TaskUpdate } from '../executor.port.js';

/** A run written down: updates, and pauses between them. */
export type Script = readonly (TaskUpdate | { readonly waitMs: number })[];

/** Plays a script; without pauses at once, so that a run may be over in the turn that began it. */
export function play(script: Script, signal: AbortSignal): AsyncIterable<TaskUpdate> | Iterable<TaskUpdate> {
  return script.some((step) => 'waitMs' in step) ? playSlowly(script, signal) : (script as TaskUpdate[]);
}

async function* playSlowly(script: Script, signal: AbortSignal): AsyncGenerator<TaskUpdate, void> {
  for (const step of script) {
    if ('waitMs' in step) await sleep(step.waitMs, undefined, { signal });
    else yield step;
  }
}
