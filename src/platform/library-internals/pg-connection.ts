import type pg from 'pg';

/**
 * The protocol connection of a client, which the types of node-postgres do not declare. The public API cannot close a
 * connection at once, because `end()` waits for the server, and does not report the errors of all statements.
 *
 * Requested upstream: https://github.com/brianc/node-postgres/issues/1244 (closed), closing a client at once.
 * Missing public API: an event of the client for each error of the server, with its SQLSTATE, and one for the end of
 * the current statement.
 * Canary test: `pg-connection.spec.ts`.
 */
interface ClientInternals {
  readonly connection: {
    on(event: 'errorMessage', listen: (message: { code?: string }) => void): void;
    once(event: 'readyForQuery', listen: () => void): void;
    readonly stream: { destroy(): void };
  };
}

/** Closes the connection of a client at once. */
export function breakConnection(client: pg.Client): void {
  connectionOf(client).stream.destroy();
}

/** Closes the connection of a client after the server has ended the current statement. */
export function breakWhenReady(client: pg.Client): void {
  connectionOf(client).once('readyForQuery', () => setImmediate(() => breakConnection(client)));
}

/** Calls `listen` with the SQLSTATE of each error that the server reports. */
export function onServerError(client: pg.Client, listen: (code: string | undefined) => void): void {
  connectionOf(client).on('errorMessage', ({ code }) => listen(code));
}

function connectionOf(client: pg.Client): ClientInternals['connection'] {
  return (client as unknown as ClientInternals).connection;
}
