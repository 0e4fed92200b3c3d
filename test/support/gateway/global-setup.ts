import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Jest compiles this file but resolves its imports as Node does, and Node finds no `.js` file for a source of the
// project.
const load = createRequire(import.meta.url);
const { keepPostgres } = load('./keeper.ts') as typeof import('./keeper.js');
const { dropRunDatabases } = load('./admin.ts') as typeof import('./admin.js');

declare global {
  /** Ends the shared services of one test run. It is set once, for any number of projects. */
  var rialtoTestRun: Promise<() => Promise<void>> | undefined;
}

/**
 * Provides one PostgreSQL server for all projects of a run: the server in RIALTO_TEST_DATABASE_URL, else an embedded
 * one.
 */
async function globalSetup(): Promise<void> {
  await (globalThis.rialtoTestRun ??= begin());
}

async function begin(): Promise<() => Promise<void>> {
  process.env.RIALTO_TEST_RUN = randomBytes(4).toString('hex');
  const outside = process.env.RIALTO_TEST_DATABASE_URL;
  if (outside) {
    process.env.RIALTO_TEST_ADMIN_URL = outside;
    return () => dropRunDatabases();
  }
  const folder = mkdtempSync(join(tmpdir(), 'rialto-test-'));
  chmodSync(folder, 0o755); // the server may run under an account that has no access to the folder
  const server = await keepPostgres(folder, { fsync: 'off' });
  process.env.RIALTO_TEST_ADMIN_URL = server.url;
  return async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}

export { globalSetup as default };
