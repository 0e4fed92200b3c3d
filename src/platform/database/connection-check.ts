import type pg from 'pg';
import { breakConnection } from '../library-internals/pg-connection.js';

/** How often a connection is checked, and how long it may stay silent. */
const everyMs = 5_000;
const watched = new Set<() => Promise<void>>();

/**
 * Ends a dead connection, so that its owner opens a new one. Without it, the owner would wait for hours for a
 * connection that was dropped silently, while the server has long released the locks of the session. It also ends a
 * connection to a server that became read-only: its address may now lead to another server, which does not know the
 * session. The watch runs until the connection ends.
 */
export function watchConnection(client: pg.Client): void {
  const check = (): Promise<void> => requireWritable(client).catch(() => breakConnection(client));
  let isSilent = false;
  const timer = setInterval(() => {
    if (isSilent) return breakConnection(client);
    isSilent = true;
    void check().then(() => (isSilent = false));
  }, everyMs).unref();
  watched.add(check);
  client.once('end', () => {
    clearInterval(timer);
    watched.delete(check);
  });
}

/** Checks every connection at once, after one of them reported a read-only server. */
export function checkConnections(): void {
  for (const check of watched) void check();
}

/** Throws when the server is read-only, such as a standby that was the primary. */
export async function requireWritable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ mode: string }>(`select current_setting('transaction_read_only') as mode`);
  if (rows[0]?.mode === 'on') throw new Error('the database server is read-only');
}
