import { setTimeout as sleep } from 'node:timers/promises';
import type { TaskRun, TaskUpdate } from '../executor.port.js';

/** A run written down: updates, and pauses between them. */
export type Script = readonly (TaskUpdate | { readonly waitMs: number })[];

/** Plays a script; without pauses at once, so that a run may be over in the turn that began it. */
export function play(script: Script, run: Pick<TaskRun, 'signal'>): AsyncIterable<TaskUpdate> | Iterable<TaskUpdate> {
  return script.some((step) => 'waitMs' in step) ? playSlowly(script, run) : (script as TaskUpdate[]);
}

async function* playSlowly(script: Script, { signal }: Pick<TaskRun, 'signal'>): AsyncGenerator<TaskUpdate, void> {
  for (const step of script) {
    if ('waitMs' in step) await sleep(step.waitMs, undefined, { signal });
    else yield step;
  }
}
