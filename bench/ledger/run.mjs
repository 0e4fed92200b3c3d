// Counts what one operation of each path costs: statements, rows, WAL, stored bytes and queue commands. Counts do not
// depend on the speed of the machine. `node bench/ledger/run.mjs [--record] [commit …]`: without a
// commit it measures this checkout. CHECK=yes fails when a count exceeds the best recorded commit; --record writes
// ledger.json. DETAIL=yes prints the statements and the growth of tables, ONLY=send,async selects paths.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../lib/processes.mjs';
import { isChecked, record, regressions, round, units } from './ledger.mjs';
import { measureCheckout } from './measure.mjs';

const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const commits = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const only = process.env.ONLY?.split(',');
const isWanted = (path) => (!only || only.includes(path)) && (!process.env.CHECK || isChecked(path));
const settings = { operations: Number(process.env.OPERATIONS ?? 300), isWanted };
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

const found = new Map();
for (const name of commits.length > 0 ? commits : ['HEAD']) {
  const [commit, date, subject] = git('log', '-1', '--format=%h%n%cI%n%s', name).split('\n');
  const checkout = commits.length > 0 ? builtCheckout(commit) : root;
  const counts = await measureCheckout(checkout, { ...settings, skipFailing: checkout !== root });
  found.set(commit, counts);
  if (options.includes('--record')) record({ commit, date, subject }, counts);
}
print(found);

if (process.env.CHECK) {
  const worse = [...found.values()].flatMap((counts) => regressions(counts));
  for (const line of worse) console.error(`more than the best commit: ${line}`);
  process.exitCode = worse.length > 0 ? 1 : 0;
}

/** Checks out a commit in the folder for temporary files, builds it once, and returns its folder. */
function builtCheckout(commit) {
  const folder = join(tmpdir(), 'rialto-ledger', commit);
  if (existsSync(join(folder, 'dist', 'src', 'main.js'))) return folder;
  git('worktree', 'prune');
  if (!existsSync(folder)) git('worktree', 'add', '--detach', folder, commit);
  for (const args of [['ci'], ['run', 'build']]) execFileSync('npm', args, { cwd: folder, stdio: 'ignore' });
  return folder;
}

function print(byCommit) {
  console.log(`\n| path | commit | ${units.join(' | ')} |`);
  console.log(`| --- | --- | ${units.map(() => '---').join(' | ')} |`);
  const names = new Set([...byCommit.values()].flatMap((counts) => Object.keys(counts)));
  for (const path of names)
    for (const [commit, counts] of byCommit)
      if (path in counts)
        console.log(`| ${[path, commit, ...units.map((unit) => round(counts[path][unit]))].join(' | ')} |`);
  if (!process.env.DETAIL) return;
  for (const [commit, counts] of byCommit)
    for (const [path, { tables, queries }] of Object.entries(counts)) {
      console.log(`\n${path} at ${commit}`);
      for (const { name, bytes } of tables) console.log(`  ${Math.round(bytes)} bytes in ${name}`);
      for (const { calls, query } of queries)
        console.log(`  ${round(calls)} times ${query.replace(/\s+/g, ' ').slice(0, 140)}`);
    }
}
