import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Client } from 'pg';
import { asAdmin, runPrefix } from './admin.js';

export interface TestDatabase {
  readonly url: string;
  /** Ends its connections and removes it. */
  drop(): Promise<void>;
}

/**
 * Creates an empty, migrated database for one test. It is a copy (about 20 ms) of a template that is migrated once per
 * run.
 */
export async function createTestDatabase(name = 'db'): Promise<TestDatabase> {
  const database = `${runPrefix()}${name.replace(/\W/g, '_').slice(0, 24)}_${randomBytes(5).toString('hex')}`;
  await asAdmin(async (client) => {
    const template = await migratedTemplate(client);
    // Copying files takes a quarter of the processor time of the default, which writes every page to the log.
    const copy = template ? ` TEMPLATE "${template}" STRATEGY file_copy` : '';
    await client.query(`CREATE DATABASE "${database}"${copy}`);
  });
  const drop = (): Promise<void> =>
    asAdmin(async (client) => {
      await connectionsToEnd(client, database);
      await client.query(`DROP DATABASE IF EXISTS "${database}" WITH (FORCE)`);
    });
  return { url: urlOf(database), drop };
}

/**
 * Waits up to one second for the connections to end. A pool that has ended may still be closing its sockets, and would
 * report a forced end as an error.
 */
async function connectionsToEnd(client: Client, database: string): Promise<void> {
  for (const until = Date.now() + 1_000; Date.now() < until; await wait(10)) {
    const { rowCount } = await client.query('SELECT FROM pg_stat_activity WHERE datname = $1', [database]);
    if (rowCount === 0) return;
  }
}

function urlOf(database: string): string {
  const url = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
  url.pathname = `/${database}`;
  return url.href;
}

const migrateModule = join(process.cwd(), 'src/platform/database/migrate.ts');

// One worker migrates the template; the others wait for its lock. The template gets its name only when it is finished,
// so an existing name means a complete template.
async function migratedTemplate(client: Client): Promise<string | undefined> {
  if (!existsSync(migrateModule)) return undefined;
  const template = `${runPrefix()}template`;
  await client.query('SELECT pg_advisory_lock(hashtext($1))', [template]);
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [template]);
    if (rowCount === 0) await makeTemplate(client, template);
    return template;
  } finally {
    await client.query('SELECT pg_advisory_unlock(hashtext($1))', [template]);
  }
}

async function makeTemplate(client: Client, template: string): Promise<void> {
  const draft = `${template}_draft`;
  await client.query(`DROP DATABASE IF EXISTS "${draft}" WITH (FORCE)`);
  await client.query(`CREATE DATABASE "${draft}"`);
  const { migrateDatabase } = (await import(migrateModule)) as { migrateDatabase(url: string): Promise<void> };
  await migrateDatabase(urlOf(draft));
  await client.query(`ALTER DATABASE "${draft}" RENAME TO "${template}"`);
}
