import type pg from 'pg';

/** How often a line is asked whether it is alive, and how long it may stay silent. */
const everyMs = 5_000;

/**
 * Ends a connection that says nothing any more, so that its owner makes a new one: a line that was dropped without a word would
 * be waited on for hours, while the server has long let go of what its session held (F24). It watches until the
 * connection ends.
 */
export function watchLine(client: pg.Client): void {
  let isAsking = false;
  const timer = setInterval(() => {
    if (isAsking) return breakLine(client);
    isAsking = true;
    client.query('select 1').then(
      () => (isAsking = false),
      () => breakLine(client),
    );
  }, everyMs).unref();
  client.once('end', () => clearInterval(timer));
}

/** A polite end would wait for the answer that does not come. */
function breakLine(client: pg.Client): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
