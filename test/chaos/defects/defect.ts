import type { Edit } from '../builds.js';
import type { ScenarioName } from '../scenarios/scenario.js';

/**
 * A small patch of the built program. `defect(value)` in it says once that the planted code ran, and is its value;
 * `defect.after(ms, work)` does work later.
 */
export interface Defect {
  readonly name: string;
  /** The promise that it breaks, and where that is seen. */
  readonly breaks: string;
  readonly scenario: ScenarioName;
  /** Below `src`, without its ending. */
  readonly file: string;
  /** The same text is in the source and in what it is compiled to. */
  readonly edits: readonly Edit[];
}

/** Before the first line of a planted file: makes `defect`. */
export function preambleOf({ name }: Defect): string {
  const told = JSON.stringify(`${exercised({ name })}\n`);
  return `let told = false; const defect = (value) => { if (!told) process.stderr.write(${told}); told = true; return value; };
defect.after = (ms, work) => (defect(), new Promise((go) => setTimeout(go, ms)).then(work));\n`;
}

/** What a process says when the planted code ran. */
export function exercised({ name }: Pick<Defect, 'name'>): string {
  return `defect exercised: ${name}`;
}
