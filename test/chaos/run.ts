import { mkdtempSync, chmodSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChaos } from './chaos.js';
import { openScene } from './scene.js';
import { Postgres, Redis } from './servers.js';

const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e9));
process.stdout.write(`seed ${seed}\n`);
const folder = mkdtempSync(join(tmpdir(), 'rialto-chaos-'));
chmodSync(folder, 0o755);
const postgres = await Postgres.start(join(folder, 'server'));
const redis = await Redis.start(join(folder, 'redis'));
process.stdout.write(`${postgres.origin}, redis ${redis?.port}\n`);
const databaseUrl = await postgres.create('chaos');
const scene = await openScene({
  folder: join(folder, 'fleet'),
  seed,
  databaseUrl,
  redisUrl: redis?.url,
  roles: ['api', 'api', 'worker', 'worker'],
});
const result = await runChaos({
  scene,
  postgres,
  redis,
  plan: JSON.parse(process.argv[2] ?? '{"kill":10}'),
  callers: 12,
  paceMs: 1_000,
});
process.stdout.write(`${JSON.stringify(result, null, 1)}\n`);
await scene.close();
await postgres.stop();
await redis?.kill();
if (result.violations.length === 0) rmSync(folder, { recursive: true });
process.exit(0);
