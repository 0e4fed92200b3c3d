import pg from 'pg';
import { systemClock } from '../../kernel/clock.js';
import { breakConnection, breakWhenReady, onServerError } from '../library-internals/pg-connection.js';
import { checkConnections } from './connection-check.js';
import { LongJson, parseLongColumns } from './long-json.js';

/** SQLSTATE 25006: a write on a read-only server, such as a standby that was the primary. */
const readOnly = '25006';

/**
 * A client of the gateway's pools. It ends when its server refuses a write because it is read-only: the address may now
 * lead to another server, and a pool would keep the connection as long as it lives. It also ends when its server
 * does not answer. A broken connection is reported to the next query. The error event must have a listener: a pool
 * removes its own from a client in use, and an unhandled event would end the process.
 */
export class PoolClient extends pg.Client {
  /** @param silenceMs milliseconds without an answer after which the connection is dead. */
  constructor(config?: pg.ClientConfig, silenceMs = 17_000) {
    super(config);
    this.on('error', () => undefined);
    const query = this.query.bind(this) as Query;
    const silence = new Silence(this, silenceMs);
    replaceQuery(this, (...args) => answered(query, args, silence));
    onServerError(this, (code) => {
      if (code !== readOnly) return;
      checkConnections();
      breakWhenReady(this);
    });
  }
}

type Query = (...args: unknown[]) => unknown;
type Rows = pg.QueryResult<Record<string, unknown>>;
type Callback = (error: Error | undefined, result?: Rows | Rows[]) => void;

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

/**
 * Runs a query, and parses the long JSON in its rows before its caller gets them. A query without a callback has one
 * too, because V8 keeps what the promises of node-postgres refer to until it collects the whole heap.
 */
function answered(query: Query, args: unknown[], silence: Silence): unknown {
  const callback = args.at(-1);
  if (typeof callback === 'function')
    return query(...args.slice(0, -1), silence.watch(withLongColumns(callback as Callback)));
  return new Promise<unknown>((resolve, reject) => {
    const settle: Callback = (error, result) => (error ? reject(error) : resolve(result));
    answered(query, [...args, settle], silence);
  }).catch((error: Error) => {
    Error.captureStackTrace(error); // of the caller of the query, not of the socket
    throw error;
  });
}

/** Returns a callback that parses the long JSON in the rows before it calls `callback`. */
function withLongColumns(callback: Callback): Callback {
  const before = LongJson.count;
  return (error, result) => {
    if (!result || LongJson.count === before) return callback(error, result);
    parseColumns(result).then((done) => callback(undefined, done), callback);
  };
}

/** A query of several statements has several results. */
async function parseColumns(result: Rows | Rows[]): Promise<Rows | Rows[]> {
  for (const { rows } of [result].flat()) await parseLongColumns(rows);
  return result;
}

function isNamed(query: unknown): query is { name: string } {
  return (
    typeof query === 'object' && query !== null && Object.getPrototypeOf(query) === Object.prototype && 'name' in query
  );
}

interface Waiting {
  readonly since: number;
  readonly fail: (error: Error) => void;
}

/**
 * Ends a connection when a query gets no answer for a time. `query_timeout` of node-postgres starts a timer for each
 * query, and V8 keeps what such a timer refers to, the values and rows of the query, until it collects the whole heap.
 */
class Silence {
  private readonly waiting: Waiting[] = [];
  private timer?: NodeJS.Timeout;

  /** @param limitMs milliseconds without an answer. */
  constructor(
    private readonly client: pg.Client,
    private readonly limitMs: number,
  ) {}

  /** Returns the callback for a query that is sent now. `callback` gets the answer, or an error after the limit. */
  watch(callback: Callback): Callback {
    const query: Waiting = { since: systemClock.elapsed(), fail: callback };
    this.waiting.push(query);
    this.timer ??= this.checkIn(this.limitMs);
    return (error, result) => {
      const index = this.waiting.indexOf(query);
      if (index === -1) return; // has failed already
      this.waiting.splice(index, 1);
      callback(error, result);
    };
  }

  private checkIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.timer = undefined;
      this.check();
    }, ms).unref();
  }

  private check(): void {
    const [oldest] = this.waiting;
    if (!oldest) return;
    const leftMs = oldest.since + this.limitMs - systemClock.elapsed();
    if (leftMs > 0) return void (this.timer = this.checkIn(leftMs));
    for (const { fail } of this.waiting.splice(0)) fail(new Error('Query read timeout'));
    breakConnection(this.client);
  }
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
