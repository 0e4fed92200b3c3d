import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { Settings } from '../platform/config/settings.js';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../platform/database/embedded-postgres.js';
import { migrateDatabase, schemaState } from '../platform/database/migrate.js';

/** A database that a command may use until it calls `close`. */
export interface OpenDatabase {
  readonly url: string;
  /** Where it comes from, for a person. */
  readonly origin: 'DATABASE_URL' | 'embedded, running' | 'embedded, started for this command';
  close(): Promise<void>;
}

const patienceMs = 20_000;

/** The database of the deployment: the named one, the embedded one of a running gateway, or that one started for a moment. */
export async function openDatabase(settings: Settings): Promise<OpenDatabase> {
  if (settings.DATABASE_URL)
    return { url: settings.DATABASE_URL, origin: 'DATABASE_URL', close: () => Promise.resolve() };
  const dataDir = resolve(settings.RIALTO_DATA_DIR);
  for (const deadline = systemClock.now() + patienceMs; ; await sleep(100)) {
    const url = findEmbeddedPostgres(dataDir);
    if (url) return { url, origin: 'embedded, running', close: () => Promise.resolve() };
    try {
      return await startFor(dataDir);
    } catch (error) {
      // A gateway that is starting owns the folder and has no server yet.
      const starting = error instanceof RialtoError && error.code === 'conflict';
      if (!starting || systemClock.now() > deadline) throw error;
    }
  }
}

async function startFor(dataDir: string): Promise<OpenDatabase> {
  const server = await startEmbeddedPostgres({ dataDir });
  const leave = (): void => void server.stop().finally(() => process.exit(130));
  process.once('SIGINT', leave).once('SIGTERM', leave);
  const close = async (): Promise<void> => {
    process.off('SIGINT', leave).off('SIGTERM', leave);
    await server.stop();
  };
  return { url: server.url, origin: 'embedded, started for this command', close };
}

/** Brings a development database up to date, as the start does; in production that is `rialto db migrate`. */
export async function requireSchema(settings: Settings, url: string): Promise<void> {
  const { applied, needed } = await schemaState(url);
  if (applied >= needed) return;
  if (settings.production)
    throw new RialtoError('unavailable', {
      message: `the schema is behind (${applied} of ${needed} migrations); run \`rialto db migrate\` first`,
    });
  await migrateDatabase(url);
}
