// `node scripts/services.mjs [step …]`: runs the suites medium and e2e on a real PostgreSQL and a real Redis, which
// scripts/real-services.mjs finds or starts.
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { keepTemporaryFilesInMemory } from './memory-files.mjs';
import { closeServices, dropKeys, findDatabase, findRedis, withoutPassword } from './real-services.mjs';
import { root, run, setUp } from './setup.mjs';

const prefix = `rialto-test-${randomBytes(4).toString('hex')}`;

await setUp();
keepTemporaryFilesInMemory();
let code = 1;
try {
  const { database, workers } = await findDatabase();
  const redis = await findRedis();
  const servers = `PostgreSQL ${withoutPassword(database)} · Redis ${withoutPassword(redis)}`;
  process.stderr.write(`Node ${process.version} · ${servers} · keys ${prefix}\n`);
  const steps = process.argv.length > 2 ? process.argv.slice(2) : ['medium', 'e2e'];
  const services = {
    RIALTO_TEST_DATABASE_URL: database,
    RIALTO_TEST_REDIS_URL: redis,
    RIALTO_TEST_KEY_PREFIX: prefix,
    RIALTO_TEST_WORKERS: workers,
  };
  code = await run(process.execPath, [join(root, 'scripts', 'test.mjs'), ...steps], {
    env: { ...process.env, ...services },
  });
  await dropKeys(redis, prefix);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
} finally {
  await closeServices();
}
process.exit(code);
