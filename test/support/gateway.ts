import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { SignJWT } from 'jose';
import { startGateway, type Gateway } from '../../src/app.js';
import { createLogger } from '../../src/platform/telemetry/logger.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { startProcess, type GatewayProcess, type ProcessOptions } from './process.js';

export const testSecret = 'kq3-Vt9fB2mZ7xR5wN8pL4sD6gH1jC0yQe';

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON, or the text when it is none. */
  body: any;
}

/** A gateway on a database of its own, with an admin's token. Everything goes with `close()`. */
export interface TestGateway {
  readonly gateway: Gateway;
  readonly url: string;
  /** Admin of the default org. */
  readonly token: string;
  readonly database: TestDatabase;
  readonly dataDir: string;
  /** Every line it logged. */
  readonly log: string[];
  call(
    method: string,
    path: string,
    body?: unknown,
    token?: string | null,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** One JSON-RPC request to `/mcp`; answers the whole response. */
  rpc(method: string, params?: unknown, token?: string | null, path?: string): Promise<any>;
  /** A token of a member, made as the operator would: org and member exist afterwards. */
  tokenOf(org: string, sub: string, role?: 'viewer' | 'member' | 'admin'): Promise<string>;
  sql<Row extends object = any>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Starts a process of its own on the same database, keys and queue; it is killed at the latest with `close()`. */
  beside(env?: Record<string, string>, options?: ProcessOptions): GatewayProcess;
  close(): Promise<void>;
}

/** `same`: start a second process on the database and the data folder, so the keys, of a first one. */
export async function startTestGateway(env: Record<string, string> = {}, same?: TestGateway): Promise<TestGateway> {
  const database = same?.database ?? (await createTestDatabase('gateway'));
  const dataDir = same?.dataDir ?? mkdtempSync(join(tmpdir(), 'rialto-test-'));
  const log: string[] = [];
  const shared = {
    NODE_ENV: 'test',
    DATABASE_URL: database.url,
    RIALTO_DATA_DIR: dataDir,
    A2A_SECRET: testSecret,
    RIALTO_RATE_LIMIT_PRINCIPAL: '1000000',
    RIALTO_RATE_LIMIT_ORG: '1000000',
    ...ownQueue(),
  };
  const started: GatewayProcess[] = [];
  const gateway = await startGateway(
    { ...shared, PORT: '0', METRICS_PORT: '0', ...env },
    { databaseMayForget: true, log: createLogger('debug', { write: (line: string) => void log.push(line) }) },
  );
  const token = gateway.tokenFile ? readFileSync(gateway.tokenFile, 'utf8').trim() : '';
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });

  const call: TestGateway['call'] = async (method, path, body, as = token, headers = {}) => {
    const response = await fetch(`${gateway.url}${path}`, {
      method,
      headers: {
        ...(as !== null && { authorization: `Bearer ${as}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await response.text();
    let parsed: unknown = text;
    try {
      parsed = JSON.parse(text);
    } catch {
      // not JSON: the text itself
    }
    return { status: response.status, headers: response.headers, body: parsed };
  };

  return {
    gateway,
    url: gateway.url,
    token,
    database,
    dataDir,
    log,
    call,
    rpc: async (method, params, as = token, path = '/mcp') =>
      (await call('POST', path, { jsonrpc: '2.0', id: 1, method, ...(params !== undefined && { params }) }, as)).body,
    tokenOf: async (org, sub, role = 'member') => {
      if (org !== 'default') await call('POST', '/api/orgs', { slug: org });
      await call('POST', `/api/orgs/${org}/members`, { sub, role });
      return signToken({ sub, org_domain: org });
    },
    sql: async (text, values) => (await pool.query(text, values)).rows as never,
    beside: (more = {}, options) => {
      const one = startProcess({ ...shared, RIALTO_LOG_LEVEL: 'warn', ...more }, options);
      started.push(one);
      return one;
    },
    close: async () => {
      for (const { child } of started) child.kill('SIGKILL');
      await Promise.all(started.map(({ ended }) => ended));
      await pool.end();
      await gateway.close();
      if (same) return;
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A queue of its own: in Redis where the suite has one, else in the database. */
function ownQueue(): Record<string, string> {
  const { RIALTO_TEST_REDIS_URL: redis, RIALTO_TEST_KEY_PREFIX: prefix = 'rialto' } = process.env;
  return redis ? { REDIS_URL: redis, RIALTO_QUEUE_PREFIX: `${prefix}-${randomBytes(4).toString('hex')}` } : {};
}

/** A token under the test secret; claims given win, `undefined` leaves one out. */
export async function signToken(claims: Record<string, unknown> = {}, secret = testSecret): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const all: Record<string, unknown> = {
    iss: 'rialto',
    aud: 'rialto',
    sub: 'bob',
    org_domain: 'default',
    iat: now,
    exp: now + 900,
    ...claims,
  };
  return new SignJWT(JSON.parse(JSON.stringify(all)) as Record<string, unknown>)
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret));
}
