// Time from process start to the ready line, and memory at rest, on the embedded database.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { show, spread } from '../lib/load.mjs';
import { root } from '../lib/processes.mjs';

const rounds = Number(process.env.ROUNDS ?? 7);
const restMs = 5_000;

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

const dataDir = mkdtempSync(join(tmpdir(), 'rialto-bench-'));
const first = await once(dataDir);
const later = [];
for (let round = 0; round < rounds; round++) later.push(await once(dataDir));
rmSync(dataDir, { recursive: true, force: true });
console.log(`bench/start: Node ${process.version}; median (least to most) of ${rounds} starts`);
console.log(`  first start, database made   ${first.seconds.toFixed(2)} s`);
console.log(`  start to ready               ${show(spread(later.map(({ seconds }) => seconds)))} s`);
console.log(`  memory at rest (Node)        ${show(spread(later.map(({ rss }) => rss)), 0)} MiB`);
