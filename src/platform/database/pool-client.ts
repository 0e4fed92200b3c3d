import pg from 'pg';
import { breakWhenReady, onServerError } from '../library-internals/pg-connection.js';
import { checkConnections } from './connection-check.js';

/** SQLSTATE 25006: a write on a read-only server, such as a standby that was the primary. */
const readOnly = '25006';

/**
 * A client of the gateway's pools. It ends when its server refuses a write because it is read-only: the address may now
 * lead to another server, and a pool would keep the connection as long as it lives. A broken connection is reported to
 * the next query. The error event must have a listener: a pool removes its own from a client in use, and an unhandled
 * event would end the process.
 */
export class PoolClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
    onServerError(this, (code) => {
      if (code !== readOnly) return;
      checkConnections();
      breakWhenReady(this);
    });
  }
}

type Query = (first: unknown, ...rest: unknown[]) => unknown;

/**
 * A client that sends statements without names: behind a pooler each transaction may run in another server process,
 * which does not have the prepared statements.
 */
export class NamelessClient extends PoolClient {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const query = this.query.bind(this) as Query;
    const nameless: Query = (first, ...rest) => query(isNamed(first) ? { ...first, name: undefined } : first, ...rest);
    Object.defineProperty(this, 'query', { value: nameless });
  }
}

function isNamed(query: unknown): query is { name: string } {
  return (
    typeof query === 'object' && query !== null && Object.getPrototypeOf(query) === Object.prototype && 'name' in query
  );
}

const probe = { name: 'rialto_probe', text: 'select pg_backend_pid() as pid' };

/**
 * Checks whether a prepared statement can be executed in a later transaction of the same client. Meanwhile other
 * clients hold server processes, because a pooler assigns the same process again as long as it is free.
 */
export async function keepsStatements(url: string): Promise<boolean> {
  const open = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const clients: pg.Client[] = [];
  try {
    const [one, ...others] = (clients.push(await open(), await open(), await open()), clients) as [
      pg.Client,
      ...pg.Client[],
    ];
    const pid = await pidOf(one, probe);
    for (const other of others) {
      await other.query('begin');
      if ((await pidOf(other, { text: probe.text })) === pid) break;
    }
    return await pidOf(one, probe).then(
      () => true,
      (error: unknown) => {
        // 26000: no such statement; 42P05: the name belongs to a statement of another client.
        if (['26000', '42P05'].includes((error as { code?: string }).code ?? '')) return false;
        throw error;
      },
    );
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  }
}

async function pidOf(client: pg.Client, query: pg.QueryConfig): Promise<number> {
  return (await client.query<{ pid: number }>(query)).rows[0]!.pid;
}
