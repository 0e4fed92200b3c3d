import type { Edit } from '../processes/builds.js';
import type { ScenarioName } from '../scenarios/scenario.js';

/**
 * A small patch of the built program. In it, `defect(value)` logs once that the planted code ran, and returns the
 * value; `defect.after(ms, work)` does work later.
 */
export interface Defect {
  readonly name: string;
  /** The invariant that the defect violates, as the checker reports it. */
  readonly breaks: string;
  readonly scenario: ScenarioName;
  /** Path below `src`, without extension. */
  readonly file: string;
  /** The replaced texts are the same in the source and in the compiled file. */
  readonly edits: readonly Edit[];
}

/** Returns the code that defines `defect`; it goes before the first line of a planted file. */
export function preambleOf({ name }: Defect): string {
  const line = JSON.stringify(`${exercised({ name })}\n`);
  return `let logged = false;
const defect = (value) => { if (!logged) process.stderr.write(${line}); logged = true; return value; };
defect.after = (ms, work) => (defect(), new Promise((go) => setTimeout(go, ms)).then(work));\n`;
}

/** Returns the log line of a process in which the planted code ran. */
export function exercised({ name }: Pick<Defect, 'name'>): string {
  return `defect exercised: ${name}`;
}
