import type pg from 'pg';

/** How often a line is asked whether it is alive, and how long it may stay silent. */
const everyMs = 5_000;
const watched = new Set<() => Promise<void>>();

/**
 * Ends a connection that says nothing any more, so that its owner makes a new one: a line that was dropped without a word would
 * be waited on for hours, while the server has long let go of what its session held (F24). The same for one whose server only reads by
 * now: its address may lead to another one, which knows nothing of what the session holds (R5). It watches until the connection ends.
 */
export function watchLine(client: pg.Client): void {
  const ask = (): Promise<void> => requireWritable(client).catch(() => breakLine(client));
  let isSilent = false;
  const timer = setInterval(() => {
    if (isSilent) return breakLine(client);
    isSilent = true;
    void ask().then(() => (isSilent = false));
  }, everyMs).unref();
  watched.add(ask);
  client.once('end', () => {
    clearInterval(timer);
    watched.delete(ask);
  });
}

/** Asks every line at once: somebody was told that the server only reads. */
export function askLines(): void {
  for (const ask of watched) void ask();
}

/** Throws for a server that only reads, such as a standby that was the primary. */
export async function requireWritable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ mode: string }>(`select current_setting('transaction_read_only') as mode`);
  if (rows[0]?.mode === 'on') throw new Error('the database server only reads');
}

/** Ends a line at once: a polite end would wait for the answer that does not come. */
export function breakLine(client: pg.Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
