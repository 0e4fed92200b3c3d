// `npm run test:chaos`: checks the invariants of docs/invariants.md on real processes and servers.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formOf } from './form.js';
import { endAll } from './leftovers.js';
import { partsOf } from './parts.js';
import type { ChaosResult } from './result.js';
import { Postgres, Redis } from './processes/servers.js';

const template = 'chaos_template';
const mostShown = 20;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const form = formOf(process.argv.slice(2));
  say(`chaos, ${form.name} form, seed ${form.seed} (repeat: npm run test:chaos -- ${form.flags} --seed=${form.seed})`);
  const folder = mkdtempSync(join(tmpdir(), 'rialto-chaos-'));
  chmodSync(folder, 0o755);
  const postgres = await Postgres.start(join(folder, 'server'));
  const redis = await Redis.start(join(folder, 'redis'));
  say(`${postgres.origin}; ${redis ? 'redis-server' : 'no redis-server found: its parts are skipped'}`);
  migrate(await postgres.create(template));
  let broken = 0;
  const play = async (name: string, run: () => Promise<ChaosResult>): Promise<void> => {
    const begun = Date.now();
    const { violations, figures } = await run();
    broken += violations.length;
    const seconds = Math.round((Date.now() - begun) / 1_000);
    say(`${violations.length === 0 ? '✔' : '✘'} ${name}, ${seconds} s: ${JSON.stringify(figures)}`);
    for (const { invariant, what } of violations.slice(0, mostShown)) say(`    ${invariant}: ${what}`);
  };
  for (const group of partsOf({ folder, form, postgres, redis, template, say })) {
    const parts = Object.entries(group).filter(([name]) => form.only.length === 0 || form.only.includes(name));
    await Promise.all(parts.map(([name, run]) => play(name, run)));
  }
  await Promise.all([postgres.stop(), redis?.kill()]);
  if (broken === 0) rmSync(folder, { recursive: true, force: true });
  say(broken === 0 ? 'no violation' : `${broken} violations; logs below ${folder}`);
  return broken === 0 ? 0 : 1;
}

function migrate(url: string): void {
  const env = { PATH: process.env.PATH, NODE_ENV: 'test', DATABASE_URL: url };
  execFileSync(process.execPath, [join('dist', 'src', 'cli.js'), 'db', 'migrate'], { env, stdio: 'ignore' });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
process.once('exit', endAll);
main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
