import { setTimeout as sleep } from 'node:timers/promises';
import type { TaskRun, TaskUpdate } from '../executor.port.js';

/** A scripted run: updates, and pauses between them. */
export type Script = readonly (TaskUpdate | { readonly waitMs: number })[];

/** Plays a script. Without pauses it is synchronous, so that a run can be over in the same tick in which it began. */
export function play(script: Script, run: Pick<TaskRun, 'signal'>): AsyncIterable<TaskUpdate> | Iterable<TaskUpdate> {
  return script.some((step) => 'waitMs' in step) ? playSlowly(script, run) : (script as TaskUpdate[]);
}

async function* playSlowly(script: Script, { signal }: Pick<TaskRun, 'signal'>): AsyncGenerator<TaskUpdate, void> {
  for (const step of script) {
    if ('waitMs' in step) await sleep(step.waitMs, undefined, { signal });
    else yield step;
  }
}
