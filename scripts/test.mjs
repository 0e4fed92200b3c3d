// `node scripts/test.mjs [step …]`: sets the checkout up and runs the steps in order, all of them by default; the first that
// fails ends the run with its exit code. Flags, and what follows `--`, go to Jest.
import { join } from 'node:path';
import { dealBatches } from './batches.mjs';
import { root, run, seconds, setUp } from './setup.mjs';

const tool = (file, ...args) => [join(root, 'node_modules', file), ...args];
const suite = (name) => tool('jest/bin/jest.js', '--selectProjects', name, '--passWithNoTests');

const given = process.argv.slice(2);
const flags = given.findIndex((word) => word.startsWith('-'));
const cut = flags === -1 ? given.length : flags;
const toJest = given.slice(given[cut] === '--' ? cut + 1 : cut);
const isWhole = toJest.length === 0;

const steps = {
  format: tool('prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'),
  lint: tool('eslint/bin/eslint.js', '--max-warnings=0', '.'),
  types: tool('typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json'),
  knip: tool('knip/bin/knip.js'),
  unit: suite('unit'),
  medium: suite('medium'),
  // Flags choose among specs, so they want each in its own file.
  e2e: suite(isWhole ? 'batches' : 'e2e'),
  helm: suite('helm'),
};
const groups = { check: ['format', 'lint', 'types', 'knip'], all: Object.keys(steps) };

const names = (cut === 0 ? ['all'] : given.slice(0, cut)).flatMap((name) => groups[name] ?? [name]);
const unknown = names.find((name) => !(name in steps));
if (unknown) {
  process.stderr.write(`There is no step ${unknown}: ${[...Object.keys(groups), ...Object.keys(steps)].join(', ')}.\n`);
  process.exit(2);
}

await setUp();
if (isWhole && names.includes('e2e')) dealBatches('test/e2e');
for (const name of names) {
  const started = Date.now();
  const isSuite = steps[name][0].includes('jest');
  const args = isSuite ? [...steps[name], ...toJest] : steps[name];
  const env = isSuite ? { ...process.env, NODE_ENV: 'test', RIALTO_TEST_BUILT: 'yes' } : process.env;
  const code = await run(process.execPath, args, { env });
  process.stderr.write(`${code === 0 ? '✔' : '✘'} ${name} ${seconds(started)}\n`);
  if (code !== 0) process.exit(code);
}
