import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { Postgres } from '../../chaos/processes/servers.js';
import { FaultProxy } from './fault-proxy.js';
import { startTestGateway, type TestGateway } from '../gateway/gateway.js';

/** A PostgreSQL server for one test, with a fault proxy in front of it. */
export interface FaultyDatabase {
  readonly proxy: FaultProxy;
  /** The database URL through the proxy. */
  readonly url: string;
  /**
   * Runs a statement directly, not through the proxy. Writes are allowed even when the server is read-only by default.
   */
  sql<Row extends object = any>(text: string, values?: unknown[]): Promise<Row[]>;
  /**
   * Simulates a failover: the server becomes read-only, and the proxy directs new connections to the promoted standby.
   */
  failOver(): Promise<void>;
  /**
   * Starts a gateway that connects through the proxy, or directly. All gateways share one data folder. `close` keeps
   * the database.
   */
  gateway(env?: Record<string, string>, direct?: boolean): Promise<TestGateway>;
  close(): Promise<void>;
}

/**
 * Starts the server and the proxy.
 * @param hasStandby starts a second server that replicates the first; `failOver` promotes it.
 */
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
