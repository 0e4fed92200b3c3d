import type { Pool } from 'pg';
import { isAuthConfigured, type Settings } from '../config/settings.js';
import { migrations, schemaState } from '../database/migrate.js';
import type { QueueBackend } from '../jobs/queue-backend.js';
import { checkKey } from '../secrets/sealed-columns.js';
import type { Vault } from '../secrets/vault.js';
import type { HealthCheck } from './health.service.js';

export function databaseCheck(pool: Pool): HealthCheck {
  return { name: 'database', run: async () => (await pool.query('select 1'), { status: 'ok' }) };
}

/** Reads the schema until it is current. */
export function schemaCheck(databaseUrl: string): HealthCheck {
  return {
    name: 'schema',
    run: untilOk(async () => {
      const { applied, needed } = await schemaState(databaseUrl);
      return applied >= migrations.length ? undefined : `schema_behind: ${applied} of ${needed} migrations`;
    }),
  };
}

export function queueCheck(queues: QueueBackend): HealthCheck {
  const detail = `${queues.kind} does not answer; work is found in the database`;
  return {
    name: 'queue',
    unanswered: 'degraded',
    run: () =>
      queues.ping().then(
        () => ({ status: 'ok' as const }),
        () => ({ status: 'degraded' as const, detail }),
      ),
  };
}

/** Opens sealed values until one opens. */
export function encryptionCheck(pool: Pool, vault: Vault): HealthCheck {
  return {
    name: 'encryption',
    run: untilOk(async () => {
      const { opened, refused } = await checkKey(pool, vault);
      return refused && opened.length === 0 ? refused.message : undefined;
    }),
  };
}

export function authCheck(settings: Settings): HealthCheck {
  const configured = isAuthConfigured(settings);
  return {
    name: 'auth',
    run: () => Promise.resolve(configured ? { status: 'ok' } : { status: 'down', detail: 'A2A_SECRET is not set' }),
  };
}

/** Runs a check until it finds no problem once. */
function untilOk(findProblem: () => Promise<string | undefined>): HealthCheck['run'] {
  let isOk = false;
  return async () => {
    if (isOk) return { status: 'ok' };
    const detail = await findProblem();
    isOk = detail === undefined;
    return isOk ? { status: 'ok' } : { status: 'down', detail };
  };
}
