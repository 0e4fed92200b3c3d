import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { loadSettings, type Settings } from '../platform/config/settings.js';
import { checkDatabase, schemaState } from '../platform/database/migrate.js';
import { prepareQueues } from '../platform/jobs/queue-backend.js';
import { openOneSecret } from '../platform/secrets/sealed-check.js';
import { Vault } from '../platform/secrets/vault.js';
import { gatewayUrl } from './connect.js';
import { openDatabase } from './database.js';
import { GatewayProbe } from './gateway-probe.js';
import { CommandError, explain, print, table, type Env } from './io.js';

/** One thing that was looked at. `skipped` means that there was nothing to look at. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'failed' | 'skipped';
  readonly detail: string;
}

export interface DoctorOptions {
  readonly url?: string;
  readonly json?: boolean;
}

/** Looks at everything a gateway needs and prints what it found. Throws when anything failed. */
export async function doctor(env: Env, options: DoctorOptions): Promise<void> {
  const findings = await examine(env, options);
  const failed = findings.filter(({ status }) => status === 'failed');
  if (options.json) print(JSON.stringify({ ok: failed.length === 0, checks: findings }, null, 2));
  else print(table(findings.map(({ check, status, detail }) => [status, check, detail])));
  if (failed.length > 0) throw new CommandError(`failed: ${[...new Set(failed.map(({ check }) => check))].join(', ')}`);
}

async function examine(env: Env, options: DoctorOptions): Promise<Finding[]> {
  let settings: Settings;
  try {
    settings = loadSettings(env);
  } catch (error) {
    return explain(error).map((detail) => ({ check: 'config', status: 'failed', detail }));
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
    return [
      await look('database', async () => {
        await checkDatabase(url, settings.NODE_ENV === 'test');
        return origin;
      }),
      await look('schema', () => schemaDetail(settings, url)),
      await look('queue', () => queueDetail(settings, url)),
      await look('encryption-key', () => keyDetail(settings, url)),
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
  const queues = await prepareQueues(settings, url);
  try {
    await queues.ping();
    return queues.kind;
  } finally {
    await queues.close();
  }
}

async function keyDetail(settings: Settings, url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const table = await openOneSecret(client, new Vault(settings.encryptionKey));
    return table ? `opens what is sealed in ${table}` : 'nothing is sealed yet';
  } finally {
    await client.end();
  }
}

function examineAuth({ production, A2A_SECRET, legacyBearer }: Settings): Finding {
  if (A2A_SECRET) return ok('auth', 'A2A_SECRET');
  if (legacyBearer) return ok('auth', 'apiKeyEnv');
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
      return [{ check: 'gateway', status: url === undefined ? 'skipped' : 'failed', detail }];
    }
    const token = env.RIALTO_TOKEN ?? developmentToken(settings);
    return [
      await look('gateway', () => probe.readiness()),
      token === undefined
        ? { check: 'mcp', status: 'skipped', detail: 'RIALTO_TOKEN is not set' }
        : await look('mcp', () => probe.initialize(token)),
    ];
  } finally {
    await probe.close();
  }
}

function developmentToken({ production, RIALTO_DATA_DIR }: Settings): string | undefined {
  const file = join(resolve(RIALTO_DATA_DIR), 'token');
  return !production && existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

async function look(check: string, work: () => Promise<string>): Promise<Finding> {
  try {
    return ok(check, await work());
  } catch (error) {
    return failed(check, error);
  }
}

function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail };
}

function failed(check: string, error: unknown): Finding {
  return { check, status: 'failed', detail: explain(error).join('; ') };
}
