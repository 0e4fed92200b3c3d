import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startGateway, type Gateway } from '../../../src/app.js';
import { createLogger } from '../../../src/platform/telemetry/logger.js';
import { callerOf, testSecret, type Caller } from './caller.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { eventually } from './eventually.js';
import { forbidSecondConnections } from '../checks/one-connection.js';
import { startProcess, type GatewayProcess, type ProcessOptions } from './process.js';

export { signToken, testSecret, type Answer } from './caller.js';

/** A gateway with its own database and the token of an admin. `close()` removes everything. */
export interface TestGateway extends Caller {
  readonly gateway: Gateway;
  readonly database: TestDatabase;
  readonly dataDir: string;
  /** All lines that the gateway logged. */
  readonly log: string[];
  sql<Row extends object = any>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Starts another gateway process on the same database, keys and queue. `close()` kills it if it still runs. */
  beside(env?: Record<string, string>, options?: ProcessOptions): GatewayProcess;
  close(): Promise<void>;
}

/**
 * Starts a gateway.
 * @param same starts a second gateway on the database and the data folder of this one, so with the same keys.
 */
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
  forbidSecondConnections(gateway);
  const token = gateway.tokenFile ? readFileSync(gateway.tokenFile, 'utf8').trim() : '';
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });

  return {
    ...callerOf(gateway.url, token),
    gateway,
    database,
    dataDir,
    log,
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

/**
 * Returns the settings of a queue for this gateway alone: in Redis when the suite has a Redis server, else in the
 * database.
 */
function ownQueue(): Record<string, string> {
  const { RIALTO_TEST_REDIS_URL: redis, RIALTO_TEST_KEY_PREFIX: prefix = 'rialto' } = process.env;
  return redis ? { REDIS_URL: redis, RIALTO_QUEUE_PREFIX: `${prefix}-${randomBytes(4).toString('hex')}` } : {};
}

/** Waits until the readiness probe answers 200. On a busy machine, a single check may have timed out. */
export async function becomesReady(gateway: Pick<TestGateway, 'call'>): Promise<void> {
  await eventually(
    async () => (await gateway.call('GET', '/readyz', undefined, null)).status,
    (status) => status === 200,
  );
}
