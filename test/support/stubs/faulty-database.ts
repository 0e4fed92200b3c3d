import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Postgres } from '../../chaos/servers.js';
import { FaultProxy } from './fault-proxy.js';
import { startTestGateway, type TestGateway } from '../gateway/gateway.js';

/** A PostgreSQL server of a test's own that may be spoiled as a whole, and a fault proxy before it. */
export interface FaultyDatabase {
  readonly proxy: FaultProxy;
  /** Through the proxy. */
  readonly url: string;
  /** Past the proxy, with writes allowed whatever the server says. */
  sql<Row extends object = any>(text: string, values?: unknown[]): Promise<Row[]>;
  /** A failover: the server only reads from now on, and the proxy leads new connections to a standby that took over. */
  failOver(): Promise<void>;
  /** A gateway behind the proxy, or past it; all share one data folder. `close` leaves the database alone. */
  gateway(env?: Record<string, string>, direct?: boolean): Promise<TestGateway>;
  close(): Promise<void>;
}

/** @param hasStandby a second server follows it, to which `failOver` leads. */
export async function startFaultyDatabase({ hasStandby = false } = {}): Promise<FaultyDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-faults-'));
  const server = await Postgres.start(join(folder, 'database'));
  const direct = await server.create('faulty');
  const standby = hasStandby ? await Postgres.standbyOf(server, join(folder, 'standby')) : undefined;
  const url = new URL(direct);
  const proxy = await FaultProxy.start(Number(url.port));
  url.port = String(proxy.port);
  const options = '-c default_transaction_read_only=off';
  const open = (connectionString: string): pg.Pool =>
    new pg.Pool({ connectionString, max: 2, options }).on('error', () => undefined);
  let pool = open(direct);
  const database = { url: direct, drop: () => Promise.resolve() };
  const shared = { database, dataDir: join(folder, 'data') } as TestGateway;
  return {
    proxy,
    url: url.href,
    sql: async (text, values) => (await pool.query(text, values)).rows as never,
    failOver: async () => {
      await standby!.takeOver(server);
      const promoted = standby!.urlOf('faulty');
      proxy.leadTo(Number(new URL(promoted).port));
      await pool.end();
      pool = open(promoted);
    },
    gateway: (env, past = false) => startTestGateway({ DATABASE_URL: past ? direct : url.href, ...env }, shared),
    close: async () => {
      await pool.end();
      await proxy.close();
      await Promise.all([server.stop(), standby?.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
