// Measures the time from process start to the ready line, and the memory at rest, with the embedded database.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../lib/processes.mjs';
import { of, printHeader, printTable, settings } from '../lib/report.mjs';

const { rounds } = settings({ rounds: 7 });
const restMs = Number(process.env.SECONDS_OF_REST ?? 5) * 1_000;

function once(dataDir) {
  const started = performance.now();
  const child = spawn(process.execPath, [join(root, 'dist/src/main.js')], {
    env: {
      ...process.env,
      NODE_ENV: 'development',
      PORT: '0',
      METRICS_PORT: '0',
      RIALTO_DATA_DIR: dataDir,
      RIALTO_LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
    child.stdout.once('data', () => {
      const seconds = (performance.now() - started) / 1_000;
      setTimeout(() => {
        const rss =
          Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? NaN) / 1_024;
        child.removeAllListeners('exit').once('exit', () => resolve({ seconds, rss }));
        child.kill('SIGTERM');
      }, restMs);
    });
  });
}

await printHeader('bench/start', { rounds, of: 'one start', databaseUrl: process.env.DATABASE_URL });
const dataDir = mkdtempSync(join(tmpdir(), 'rialto-bench-'));
const first = await once(dataDir);
const later = [];
for (let round = 0; round < rounds; round++) later.push(await once(dataDir));
rmSync(dataDir, { recursive: true, force: true });
printTable(
  ['first start, database made: s', 'start to ready: s', 'memory of the Node process at rest: MiB'],
  [[first.seconds.toFixed(2), of(later, 'seconds', 2), of(later, 'rss', 0)]],
);
