// `node scripts/test.mjs [step …]`: sets up the checkout and runs the steps in order, by default all of them. The first
// failed step ends the run with its exit code. Consecutive steps of `check` run in parallel. Flags, and arguments after
// `--`, go to Jest. `RIALTO_TEST_E2E=wire/streams,a2e/a2e` runs only those e2e specs.
import { join } from 'node:path';
import { dealBatches } from './batches.mjs';
import { root, run, seconds, setUp } from './setup.mjs';

const tool = (file, ...args) => [join(root, 'node_modules', file), ...args];
// `--silent`, because third-party servers write to the console at every message.
const suite = (name) => tool('jest/bin/jest.js', '--selectProjects', name, '--passWithNoTests', '--silent');

const given = process.argv.slice(2);
const flags = given.findIndex((word) => word.startsWith('-'));
const cut = flags === -1 ? given.length : flags;
const toJest = given.slice(given[cut] === '--' ? cut + 1 : cut);
const isWhole = toJest.length === 0;

const steps = {
  format: tool('prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'),
  lint: tool('eslint/bin/eslint.js', '--max-warnings=0', '.'),
  types: tool('typescript-native/bin/tsc', '--noEmit', '-p', 'tsconfig.json'),
  knip: tool('knip/bin/knip.js'),
  english: [join(root, 'scripts', 'english.mjs')],
  // Flags select specs, so each spec must be a separate file.
  unit: suite(isWhole ? 'unit-batches' : 'unit'),
  medium: suite('medium'),
  e2e: suite(isWhole ? 'e2e-batches' : 'e2e'),
  helm: suite('helm'),
};
const groups = { check: ['format', 'lint', 'types', 'knip', 'english'], all: Object.keys(steps) };

const names = (cut === 0 ? ['all'] : given.slice(0, cut)).flatMap((name) => groups[name] ?? [name]);
const unknown = names.find((name) => !(name in steps));
if (unknown) {
  process.stderr.write(`There is no step ${unknown}: ${[...Object.keys(groups), ...Object.keys(steps)].join(', ')}.\n`);
  process.exit(2);
}

await setUp();
if (isWhole && names.includes('unit')) dealBatches('unit');
if (isWhole && names.includes('e2e')) dealBatches('e2e', process.env.RIALTO_TEST_E2E?.split(','));
/** Steps that only read the checkout run in parallel: the linter alone keeps one core busy for a minute. */
const rounds = [];
for (const name of names) {
  const last = rounds.at(-1);
  if (last && [last[0], name].every((one) => groups.check.includes(one))) last.push(name);
  else rounds.push([name]);
}

async function runStep(name) {
  const started = Date.now();
  const isSuite = steps[name][0].includes('jest');
  const args = isSuite ? [...steps[name], ...toJest] : steps[name];
  // The suites start hundreds of processes, and each would compile the product again.
  const compiled = join(root, '.cache', 'compiled');
  const forSuites = { NODE_ENV: 'test', RIALTO_TEST_BUILT: 'yes', NODE_COMPILE_CACHE: compiled };
  const env = isSuite ? { ...process.env, ...forSuites } : process.env;
  const code = await run(process.execPath, args, { env });
  process.stderr.write(`${code === 0 ? '✔' : '✘'} ${name} ${seconds(started)} on Node ${process.version}\n`);
  return code;
}

for (const round of rounds) {
  const failed = (await Promise.all(round.map(runStep))).find((code) => code !== 0);
  if (failed !== undefined) process.exit(failed);
}
