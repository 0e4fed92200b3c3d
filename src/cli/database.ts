import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { Settings } from '../platform/config/settings.js';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../platform/database/embedded-postgres.js';

/** A database that a command may use until it calls `close`. */
export interface OpenDatabase {
  readonly url: string;
  /** Origin of the database, shown to the operator. */
  readonly origin: 'DATABASE_URL' | 'embedded, running' | 'embedded, started for this command';
  close(): Promise<void>;
}

const timeoutMs = 20_000;

/**
 * Opens the database of the deployment: the one of DATABASE_URL, the embedded one of a running gateway, or the
 * embedded one started for this command.
 */
export async function openDatabase(settings: Settings): Promise<OpenDatabase> {
  if (settings.DATABASE_URL)
    return { url: settings.DATABASE_URL, origin: 'DATABASE_URL', close: () => Promise.resolve() };
  const dataDir = resolve(settings.RIALTO_DATA_DIR);
  for (const deadline = systemClock.now() + timeoutMs; ; await sleep(100)) {
    const url = findEmbeddedPostgres(dataDir);
    if (url) return { url, origin: 'embedded, running', close: () => Promise.resolve() };
    try {
      return await startFor(dataDir);
    } catch (error) {
      // A gateway that is starting has locked the folder, but its server does not run yet.
      const starting = error instanceof RialtoError && error.code === 'conflict';
      if (!starting || systemClock.now() > deadline) throw error;
    }
  }
}

async function startFor(dataDir: string): Promise<OpenDatabase> {
  const server = await startEmbeddedPostgres({ dataDir });
  const stopOnSignal = (): void => void server.stop().finally(() => process.exit(130));
  process.once('SIGINT', stopOnSignal).once('SIGTERM', stopOnSignal);
  const close = async (): Promise<void> => {
    process.off('SIGINT', stopOnSignal).off('SIGTERM', stopOnSignal);
    await server.stop();
  };
  return { url: server.url, origin: 'embedded, started for this command', close };
}
