import { outwardChecks } from './checks/outward.js';
import { sightChecks } from './checks/sight.js';
import { taskChecks } from './checks/tasks.js';
import type { History } from './history.js';

/** A promise that was broken, and where. The invariants are those of reliability-security.md section 3.0. */
export interface Violation {
  readonly invariant: string;
  readonly what: string;
}

/** What one part of the checker finds of one invariant, in words. */
export type Check = (history: History) => Iterable<string>;

const checks: readonly (readonly [string, Check])[] = [...taskChecks, ...outwardChecks, ...sightChecks];

/** Every broken promise of a recorded run. Pure: the same history has the same violations. */
export function check(history: History): Violation[] {
  const found = checks.flatMap(([invariant, of]) => [...of(history)].map((what) => ({ invariant, what })));
  const measured = history.measures
    .filter(({ value, most }) => !(value <= most))
    .map(({ invariant, what, value, most }) => ({ invariant, what: `${what}: ${value}, at most ${most}` }));
  return [...found, ...measured];
}

/** Rows by one of their values, in their order. */
export function groupBy<Row>(rows: Iterable<Row>, keyOf: (row: Row) => string | undefined): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}
