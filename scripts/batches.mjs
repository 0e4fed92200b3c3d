// Each Jest file loads the whole product again, which takes seconds of CPU time: more than most specs. So this module
// combines the specs into a few batch files that run several specs after one load.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './setup.mjs';

/** Seconds of the slow specs, as measured once. The batches are balanced so that they end at about the same time. */
export const secondsOf = JSON.parse(readFileSync(join(root, 'scripts', 'spec-seconds.json'), 'utf8'));
const usualSeconds = { unit: 0.3, e2e: 6 };

/** The specs of each suite, and the largest number of its batches. */
const suites = {
  unit: {
    isPart: (path) => /^(?:src\/.*|test\/(?:checkout\/|clients\/|chaos\/)?[^/]*)\.spec\.ts$/.test(path),
    most: 3,
  },
  e2e: { isPart: (path) => /^test\/e2e\/.*\.spec\.ts$/.test(path), most: 8 },
};
/** The least number of specs in a batch. For fewer specs, an extra load costs more than it saves. */
const specsOfBatch = 4;

/**
 * Writes the batch files of a suite into `.cache/batches`, from all its specs or from the named ones; with
 * `RIALTO_TEST_CHECKOUT=no` without those of test/checkout.
 */
export function dealBatches(suite, names) {
  const { isPart, most } = suites[suite];
  const all = ['src', 'test']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)))
    .filter(isPart)
    .sort();
  const nameOf = (path) => relative(join('test', suite), path).slice(0, -'.spec.ts'.length);
  const missing = names?.filter((name) => !all.some((path) => nameOf(path) === name)) ?? [];
  if (missing.length > 0) throw new Error(`There is no spec ${missing.join(', ')} in ${suite}.`);
  const isGone = (path) => process.env.RIALTO_TEST_CHECKOUT === 'no' && path.startsWith(join('test', 'checkout'));
  const specs = all.filter((path) => !isGone(path) && (names?.includes(nameOf(path)) ?? true));
  const into = join(root, '.cache', 'batches', suite);
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const count = Math.min(most, Math.ceil(specs.length / specsOfBatch));
  const weigh = (path) => secondsOf[path] ?? usualSeconds[suite];
  const batches = Array.from({ length: count }, () => ({ seconds: 0, specs: [] }));
  for (const path of specs.toSorted((one, other) => weigh(other) - weigh(one))) {
    const lightest = batches.reduce((least, batch) => (batch.seconds < least.seconds ? batch : least));
    lightest.seconds += weigh(path);
    lightest.specs.push(path);
  }
  for (const [index, batch] of batches.entries()) {
    const lines = batch.specs.map((path) => {
      const spec = JSON.stringify(relative(into, join(root, path)));
      return `describe(${JSON.stringify(path)}, () => void require(${spec}));\n`;
    });
    writeFileSync(join(into, `${index}.spec.js`), lines.join(''));
  }
}
