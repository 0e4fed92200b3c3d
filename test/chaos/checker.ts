import { outwardChecks } from './checks/outward.js';
import { sightChecks } from './checks/sight.js';
import { taskChecks } from './checks/tasks.js';
import type { Check, History } from './history.js';

/** A violated invariant, with the details. docs/invariants.md describes the invariants. */
export interface Violation {
  readonly invariant: string;
  readonly what: string;
}

const checks: readonly (readonly [string, Check])[] = [...taskChecks, ...outwardChecks, ...sightChecks];

/** Returns all violations in a recorded run. It is a pure function: the same history gives the same violations. */
export function check(history: History): Violation[] {
  const found = checks.flatMap(([invariant, of]) => [...of(history)].map((what) => ({ invariant, what })));
  const measured = history.measures
    .filter(({ value, most }) => !(value <= most))
    .map(({ invariant, what, value, most }) => ({ invariant, what: `${what}: ${value}, at most ${most}` }));
  return [...found, ...measured];
}
