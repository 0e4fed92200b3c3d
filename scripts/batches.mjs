// A file of Jest loads the product anew, in seconds of processor time: more than most specs run. So they are dealt into a few
// files that run one after the other what each spec says, in one load.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './setup.mjs';

/** Seconds that specs take which take long, as measured once: batches are dealt so that they end together. */
const secondsOf = JSON.parse(readFileSync(join(root, 'scripts', 'spec-seconds.json'), 'utf8'));
const usualSeconds = { unit: 0.3, e2e: 12 };

/** The specs of each suite. */
const suites = {
  unit: { isPart: (path) => /^(?:src\/.*|test\/[^/]*|test\/chaos\/[^/]*)\.spec\.ts$/.test(path), most: 6 },
  e2e: { isPart: (path) => /^test\/e2e\/.*\.spec\.ts$/.test(path), most: 15 },
};
/** A load that few specs share costs more than it saves. */
const specsOfBatch = 4;

/** Writes the files of a suite into `.cache/batches`, from all of its specs or from those of these names. */
export function dealBatches(suite, names) {
  const { isPart, most } = suites[suite];
  const all = ['src', 'test']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)))
    .filter(isPart)
    .sort();
  const nameOf = (path) => relative(join('test', suite), path).slice(0, -'.spec.ts'.length);
  const missing = names?.filter((name) => !all.some((path) => nameOf(path) === name)) ?? [];
  if (missing.length > 0) throw new Error(`There is no spec ${missing.join(', ')} in ${suite}.`);
  const specs = all.filter((path) => names?.includes(nameOf(path)) ?? true);
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
