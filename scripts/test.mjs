// `node scripts/test.mjs [step …]`: sets up the checkout and runs the steps in order, by default all of them. The first
// failed step ends the run with its exit code. Consecutive steps of `check` run in parallel; consecutive suites after
// `unit` share the workers of one Jest run. Flags, and arguments after `--`, go to Jest.
// `RIALTO_TEST_E2E=wire/streams,a2e/a2e` runs only those e2e specs.
import { join } from 'node:path';
import { dealBatches } from './batches.mjs';
import { keepTemporaryFilesInMemory } from './memory-files.mjs';
import { root, run, seconds, setUp } from './setup.mjs';

const tool = (file, ...args) => [join(root, 'node_modules', file), ...args];
// `--silent`, because third-party servers write to the console at every message.
const jest = (...names) => tool('jest/bin/jest.js', '--selectProjects', ...names, '--passWithNoTests', '--silent');

const given = process.argv.slice(2);
const flags = given.findIndex((word) => word.startsWith('-'));
const cut = flags === -1 ? given.length : flags;
const toJest = given.slice(given[cut] === '--' ? cut + 1 : cut);
const isWhole = toJest.length === 0;

const checks = {
  format: tool('prettier/bin/prettier.cjs', '--check', '--log-level=warn', '.'),
  lint: tool('eslint/bin/eslint.js', '--max-warnings=0', '.'),
  types: tool('typescript-native/bin/tsc', '--noEmit', '-p', 'tsconfig.json'),
  knip: tool('knip/bin/knip.js'),
  english: [join(root, 'scripts', 'english.mjs')],
};
/** The Jest project of each suite. Flags select specs, so each spec must then be a separate file. */
const projects = {
  unit: isWhole ? 'unit-batches' : 'unit',
  medium: 'medium',
  e2e: isWhole ? 'e2e-batches' : 'e2e',
  helm: 'helm',
};
const all = [...Object.keys(checks), ...Object.keys(projects)];
const groups = { check: Object.keys(checks), all };

const names = (cut === 0 ? ['all'] : given.slice(0, cut)).flatMap((name) => groups[name] ?? [name]);
const unknown = names.find((name) => !all.includes(name));
if (unknown) {
  process.stderr.write(`There is no step ${unknown}: ${[...Object.keys(groups), ...all].join(', ')}.\n`);
  process.exit(2);
}

await setUp();
keepTemporaryFilesInMemory();
if (isWhole && names.includes('unit')) dealBatches('unit');
if (isWhole && names.includes('e2e')) dealBatches('e2e', process.env.RIALTO_TEST_E2E?.split(','));
/** Steps that only read the checkout run in parallel: the linter alone keeps one core busy for a minute. */
const rounds = [];
for (const name of names) {
  const last = rounds.at(-1);
  const isCheck = name in checks;
  if (last && (isCheck ? last[0] in checks : last[0] in projects && last[0] !== 'unit')) last.push(name);
  else rounds.push([name]);
}

async function runStep(label, args, env = process.env) {
  const started = Date.now();
  const code = await run(process.execPath, args, { env });
  process.stderr.write(`${code === 0 ? '✔' : '✘'} ${label} ${seconds(started)} on Node ${process.version}\n`);
  return code;
}

// The suites start hundreds of processes, and each would compile the product again.
const compiled = join(root, '.cache', 'compiled');
const forSuites = { NODE_ENV: 'test', RIALTO_TEST_BUILT: 'yes', NODE_COMPILE_CACHE: compiled };
const runSuites = (names) =>
  runStep(names.join(', '), [...jest(...names.map((name) => projects[name])), ...toJest], {
    ...process.env,
    ...forSuites,
  });

for (const round of rounds) {
  const running = round[0] in checks ? round.map((name) => runStep(name, checks[name])) : [runSuites(round)];
  const failed = (await Promise.all(running)).find((code) => code !== 0);
  if (failed !== undefined) process.exit(failed);
}
