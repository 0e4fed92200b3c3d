import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { systemClock } from '../kernel/clock.js';
import { isAuthConfigured, loadSettings, type Settings } from '../platform/config/settings.js';
import { checkDatabase, schemaState } from '../platform/database/migrate.js';
import { createLogger } from '../platform/telemetry/logger.js';
import { prepareQueues } from '../platform/jobs/queue-backend.js';
import { checkKey } from '../platform/secrets/sealed-columns.js';
import { Vault } from '../platform/secrets/vault.js';
import { gatewayUrl } from './connect.js';
import { openDatabase } from './database.js';
import { GatewayProbe } from './gateway-probe.js';
import { GatewayTrials } from './gateway-trials.js';
import { CommandError, explain, note, print, Skipped, table, type Env } from './io.js';

/** Largest accepted clock difference: the same as for tokens. */
const maxSkewMs = 60_000;

/** The result of one check. `skipped` means that there was nothing to check. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'failed' | 'skipped';
  readonly detail: string;
  /** Advice for a failure. */
  readonly hint?: string;
}

/** First thing to try when a check fails and its error text gives no advice. */
const hints: Readonly<Record<string, string>> = {
  config: 'the gateway does not start until this is corrected; docs/settings.md describes the settings and the files',
  database: 'see DATABASE_URL, and that the server runs and accepts connections from here',
  schema: 'run `rialto db migrate`',
  queue:
    'with REDIS_URL: see that the server runs; work continues from the database meanwhile. ' +
    'Without it the queues are in the database: run `rialto db migrate`',
  clock:
    'run NTP on this machine and on the one of the database: ' +
    'tokens use the clock of this one, leases that of the other',
  'encryption-key': 'RIALTO_ENCRYPTION_KEY must be the key that the database was used with before',
  auth: 'make one with `openssl rand -base64 48`',
  gateway: 'see that it runs at this address, its log, and `/readyz` for what is down',
  card: 'see the default agent of the org and its card at /api/a2a/published',
  mcp: 'see RIALTO_TOKEN: `rialto token --org default --sub you --role admin` prints a fresh one',
  policy: 'see /api/policies; `rialto policy disable` removes a broken one',
  task: 'see that a process with the role worker or all runs, and the queue board at /admin/queues',
  webhook: 'see the log of the gateway and RIALTO_OUTBOUND_ALLOW',
};

export interface DoctorOptions {
  readonly url?: string;
  readonly json?: boolean;
}

/** Checks everything that a gateway needs and prints the results. Throws when a check failed. */
export async function doctor(env: Env, options: DoctorOptions): Promise<void> {
  const findings = await examine(env, options);
  const failed = findings.filter(({ status }) => status === 'failed');
  if (options.json) print(JSON.stringify({ ok: failed.length === 0, checks: findings }, null, 2));
  else {
    print(table(findings.map(({ check, status, detail }) => [status, check, detail])));
    for (const { check, hint } of failed) if (hint) note(`${check}: ${hint}`);
  }
  if (failed.length > 0) throw new CommandError(`failed: ${[...new Set(failed.map(({ check }) => check))].join(', ')}`);
}

async function examine(env: Env, options: DoctorOptions): Promise<Finding[]> {
  let settings: Settings;
  try {
    settings = loadSettings(env);
  } catch (error) {
    return explain(error).map((detail) => ({ ...failed('config', error), detail }));
  }
  return [
    ok('config', settings.production ? 'production' : 'development'),
    ...(await examineDatabase(settings)),
    examineAuth(settings),
    ...(await examineGateway(env, settings, options)),
  ];
}

async function examineDatabase(settings: Settings): Promise<Finding[]> {
  let database;
  try {
    database = await openDatabase(settings);
  } catch (error) {
    return [failed('database', error)];
  }
  const { url, origin } = database;
  try {
    const found = await runCheck('database', async () => {
      await checkDatabase(url, settings.NODE_ENV === 'test');
      return origin;
    });
    // Without a database the checks that need it would fail for the same reason, with misleading hints.
    const withDatabase = (check: string, work: () => Promise<string>): Promise<Finding> =>
      runCheck(check, found.status === 'ok' ? work : () => Promise.reject(new Skipped('the database cannot be used')));
    return [
      found,
      await withDatabase('schema', () => schemaDetail(settings, url)),
      await (settings.REDIS_URL ? runCheck : withDatabase)('queue', () => queueDetail(settings, url)),
      await withDatabase('clock', () => clockDetail(url)),
      await withDatabase('encryption-key', () => keyDetail(settings, url)),
    ];
  } finally {
    await database.close();
  }
}

async function schemaDetail({ production }: Settings, url: string): Promise<string> {
  const { applied, needed, queue } = await schemaState(url);
  if (applied === 0 && !production) return 'none yet: the first start of the gateway makes it';
  if (applied < needed) throw new CommandError(`${applied} of ${needed} migrations; run \`rialto db migrate\``);
  if (!queue) throw new CommandError('the tables of the queue are missing; run `rialto db migrate`');
  return `${applied} of ${needed} migrations`;
}

async function queueDetail(settings: Settings, url: string): Promise<string> {
  const queues = await prepareQueues(settings, settings.RIALTO_DATABASE_DIRECT_URL ?? url, createLogger('silent'));
  try {
    await queues.ping();
    return queues.kind;
  } finally {
    await queues.close();
  }
}

/** Returns the clock difference to the database. The latency of one direction is taken as half of the round trip. */
async function clockDetail(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const begun = systemClock.now();
    const { rows } = await client.query<{ now: number }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now',
    );
    const skewMs = Math.round(rows[0]!.now - (begun + systemClock.now()) / 2);
    const difference = `${Math.abs(skewMs)} ms ${skewMs < 0 ? 'ahead of' : 'behind'} that of the database`;
    if (Math.abs(skewMs) > maxSkewMs) throw new CommandError(`the clock here is ${difference}`);
    return difference;
  } finally {
    await client.end();
  }
}

async function keyDetail(settings: Settings, url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const vault = new Vault(settings.encryptionKey, settings.otherEncryptionKey);
    const { opened, refused } = await checkKey(client, vault);
    if (refused) throw refused;
    return opened[0] ? `opens what is sealed in ${opened[0]}` : 'nothing is sealed yet';
  } finally {
    await client.end();
  }
}

function examineAuth(settings: Settings): Finding {
  const { production, A2A_SECRET, legacyBearer } = settings;
  if (A2A_SECRET) return ok('auth', 'A2A_SECRET');
  if (legacyBearer) return ok('auth', 'apiKeyEnv');
  if (isAuthConfigured(settings) && production) return ok('auth', 'apiKeyEnv of single agents');
  return production
    ? failed('auth', new CommandError('A2A_SECRET is not set: every agent door answers 503'))
    : ok('auth', 'development: the token in the data folder, and secrets of orgs');
}

async function examineGateway(env: Env, settings: Settings, { url }: DoctorOptions): Promise<Finding[]> {
  const address = gatewayUrl(env, url);
  const probe = new GatewayProbe(address);
  try {
    if (!(await probe.answers())) {
      const detail = `no gateway at ${address}`;
      return [
        url === undefined
          ? skipped('gateway', `${detail}; --url names another`)
          : failed('gateway', new CommandError(detail)),
      ];
    }
    const token = env.RIALTO_TOKEN ?? developmentToken(settings);
    const trials = token === undefined ? undefined : new GatewayTrials(probe, token);
    const withToken = (check: string, work: (trials: GatewayTrials) => Promise<string>): Promise<Finding> =>
      runCheck(check, () => (trials ? work(trials) : Promise.reject(new Skipped('RIALTO_TOKEN is not set'))));
    const gateway = await runCheck('gateway', () => probe.readiness());
    const others = (checks: string[], reason: string): Finding[] => checks.map((check) => skipped(check, reason));
    // The checks below would fail for the same reason, with misleading hints.
    if (gateway.status === 'failed')
      return [gateway, ...others(['card', 'mcp', 'policy', 'task', 'webhook'], 'the gateway is not ready')];
    const card = await runCheck('card', () => probe.cardName());
    const mcp = await withToken('mcp', () => probe.initialize(token!));
    if (mcp.status === 'failed' && /\b401\b/.test(mcp.detail))
      return [gateway, card, mcp, ...others(['policy', 'task', 'webhook'], 'the gateway does not take this token')];
    return [
      gateway,
      card,
      mcp,
      await withToken('policy', (gateway) => gateway.policy()),
      await withToken('task', (gateway) => gateway.task()),
      await withToken('webhook', (gateway) => gateway.webhook()),
    ];
  } finally {
    await probe.close();
  }
}

function developmentToken({ production, RIALTO_DATA_DIR }: Settings): string | undefined {
  const file = join(resolve(RIALTO_DATA_DIR), 'token');
  return !production && existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

async function runCheck(check: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return ok(check, await work());
  } catch (error) {
    if (error instanceof Skipped) return skipped(check, error.message);
    return failed(check, error);
  }
}

function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail };
}

function skipped(check: string, detail: string): Finding {
  return { check, status: 'skipped', detail };
}

function failed(check: string, error: unknown): Finding {
  const hint = hints[check];
  return { check, status: 'failed', detail: explain(error).join('; '), ...(hint && { hint }) };
}
