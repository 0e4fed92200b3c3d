import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '../../support/gateway/database.js';
import { startProcess } from '../../support/gateway/process.js';

/** Sources have no bundle, and Node 20 keeps no record of what it has compiled. */
const canCount = process.env.RIALTO_TEST_BUILT === 'yes' && Number(process.versions.node.split('.')[0]) >= 22;

(canCount ? it : it.skip)('a start reads few files: the build has joined the gateway and its packages', async () => {
  const database = await createTestDatabase('bundle');
  const folder = mkdtempSync(join(tmpdir(), 'rialto-bundle-'));
  const compiled = join(folder, 'compiled'); // Node writes a file here for each module that it has loaded
  const env = { NODE_ENV: 'test', DATABASE_URL: database.url, RIALTO_DATA_DIR: folder, NODE_COMPILE_CACHE: compiled };
  const { ready, child, ended } = startProcess(env);
  await ready;
  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
  const modules = readdirSync(compiled, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(modules.length).toBeGreaterThan(5);
  expect(modules.length).toBeLessThan(60);
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
