// Runs the benchmarks in turn: `node bench/run.mjs`, or the named ones (`bridge a2a/growth`). With --short each makes
// one short shot of every path, which checks the answers and the counts of the ledger but measures no times. Fails when
// a benchmark fails.
import { root, run, seconds, setUp } from '../scripts/setup.mjs';

const benchmarks = {
  start: 'start/run',
  bridge: 'bridge/run',
  mcp: 'mcp/run',
  a2a: 'a2a/run',
  'a2a/idle-streams': 'a2a/idle-streams',
  'a2a/growth': 'a2a/growth',
  'a2a/encrypted': 'a2a/encrypted',
  queue: 'queue/run',
  webhooks: 'webhooks/run',
  growth: 'growth/run',
  rest: 'rest/run',
  ledger: 'ledger/run',
  neighbours: 'neighbours/run',
};
const short = {
  ROUNDS: '1',
  SECONDS_PER_SHOT: '0.25',
  WARM_UP_SHOTS: '1',
  SECONDS_OF_REST: '0.5',
  PROXIES: 'none',
  STREAMS: '200',
  SIZES: '2500,5000',
  COUNTS: '10,30',
  SAMPLE: '10',
  TASKS: '100',
  CHECK: 'yes',
};

const isShort = process.argv.includes('--short');
const named = process.argv.slice(2).filter((argument) => argument !== '--short');
const unknown = named.filter((name) => !(name in benchmarks));
if (unknown.length > 0) {
  console.error(`unknown benchmark ${unknown.join(', ')}; the benchmarks are ${Object.keys(benchmarks).join(', ')}`);
  process.exit(2);
}
await setUp();
const startedAt = Date.now();
const failed = [];
for (const [name, file] of Object.entries(benchmarks)) {
  if (named.length > 0 && !named.includes(name)) continue;
  const env = { ...process.env, ...(isShort && short) };
  const beganAt = Date.now();
  const code = await run(process.execPath, [`${root}/bench/${file}.mjs`], { env });
  console.log(`\n${name}: ${code === 0 ? 'done' : 'failed'} after ${seconds(beganAt)}`);
  if (code !== 0) failed.push(name);
}
console.log(`\n${failed.length > 0 ? `failed: ${failed.join(', ')}` : 'every benchmark ran'}, ${seconds(startedAt)}`);
process.exitCode = failed.length > 0 ? 1 : 0;
