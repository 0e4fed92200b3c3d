import pg from 'pg';
import { breakWhenReady, onServerError } from '../library-internals/pg-connection.js';
import { checkConnections } from './connection-check.js';
import { LongJson, parseLongColumns } from './long-json.js';

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
    const query = this.query.bind(this) as Query;
    replaceQuery(this, (...args) => withLongColumns(query, args));
    onServerError(this, (code) => {
      if (code !== readOnly) return;
      checkConnections();
      breakWhenReady(this);
    });
  }
}

type Query = (...args: unknown[]) => unknown;
type Rows = pg.QueryResult<Record<string, unknown>>;
type Callback = (error?: Error, result?: Rows | Rows[]) => void;

/**
 * A client that sends statements without names: behind a pooler each transaction may run in another server process,
 * which does not have the prepared statements.
 */
export class NamelessClient extends PoolClient {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const query = this.query.bind(this) as Query;
    const nameless: Query = (first, ...rest) => query(isNamed(first) ? { ...first, name: undefined } : first, ...rest);
    replaceQuery(this, nameless);
  }
}

function replaceQuery(client: pg.Client, query: Query): void {
  Object.defineProperty(client, 'query', { value: query, configurable: true });
}

/** Runs a query, and parses the long JSON in its rows before its caller gets them. */
function withLongColumns(query: Query, args: unknown[]): unknown {
  const before = LongJson.count;
  // A query of several statements has several results.
  const parsed = async (result: Rows | Rows[]): Promise<Rows | Rows[]> => {
    for (const { rows } of [result].flat()) await parseLongColumns(rows);
    return result;
  };
  if (typeof args.at(-1) !== 'function')
    return (query(...args) as Promise<Rows | Rows[]>).then((result) =>
      LongJson.count === before ? result : parsed(result),
    );
  const callback = args.at(-1) as Callback;
  const withCallback: Callback = (error, result) => {
    if (!result || LongJson.count === before) callback(error, result);
    else parsed(result).then((done) => callback(undefined, done), callback);
  };
  return query(...args.slice(0, -1), withCallback);
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
