import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('ledger.json', import.meta.url);

/** How far a count may exceed the best commit: a share of it, and an absolute part for small counts. */
const tolerance = {
  statements: { share: 0, plus: 0.3 },
  rows: { share: 0, plus: 0.1 },
  'WAL records': { share: 0.05, plus: 0.5 },
  'WAL bytes': { share: 0.05, plus: 100 },
  'stored bytes': { share: 0.1, plus: 200 },
  'queue commands': { share: 0.1, plus: 0.5 },
};

/** How many tasks share a statement or a job depends on the speed of the machine, so nothing checks this path. */
export const isChecked = (path) => !path.includes('at once');

export const checkedUnits = Object.keys(tolerance);

/** Allocated bytes also depend on how far V8 has optimized the code, so they are recorded and not checked. */
export const units = [...checkedUnits, 'allocated bytes'];

/** Reads the recorded commits, oldest first: `{ commit, date, subject, counts: { path: { unit: count } } }`. */
export function readLedger() {
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** Adds the counts of a commit, or replaces those that it had of the same paths. */
export function record(commit, counts) {
  const ledger = readLedger();
  const known = ledger.find((entry) => entry.commit === commit.commit);
  if (known) Object.assign(known.counts, rounded(counts));
  else ledger.push({ ...commit, counts: rounded(counts) });
  ledger.sort((a, b) => a.date.localeCompare(b.date));
  writeFileSync(file, `${JSON.stringify(ledger, null, 2)}\n`);
}

/** Returns a line for each count that exceeds the best recorded one of its path, or that has none. */
export function regressions(counts, ledger = readLedger()) {
  const checked = Object.entries(counts).filter(([path]) => isChecked(path));
  return checked.flatMap(([path, found]) =>
    checkedUnits.flatMap((unit) => {
      const best = bestOf(ledger, path, unit);
      if (!best) return [`${path}: no commit has recorded ${unit}`];
      const { share, plus } = tolerance[unit];
      const most = best.count * (1 + share) + plus;
      if (found[unit] <= most) return [];
      return [`${path}: ${round(found[unit])} ${unit}, ${best.count} at ${best.commit} (at most ${round(most)})`];
    }),
  );
}

function bestOf(ledger, path, unit) {
  const all = ledger.flatMap(({ commit, counts }) => {
    const count = counts[path]?.[unit];
    return count === undefined ? [] : [{ commit, count }];
  });
  return all.sort((a, b) => a.count - b.count)[0];
}

function rounded(counts) {
  return Object.fromEntries(
    Object.entries(counts).map(([path, found]) => [
      path,
      Object.fromEntries(units.map((unit) => [unit, round(found[unit])])),
    ]),
  );
}

export function round(count) {
  return Math.round(count * 10) / 10;
}
