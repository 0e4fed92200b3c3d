import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../kernel/clock.js';
import { environment } from '../platform/config/env.schema.js';
import { secretVariable } from '../platform/config/variable.js';
import { checkDatabase, migrateDatabase, schemaState } from '../platform/database/migrate.js';
import { CommandError, explain, note, type Env } from './io.js';

const pauseMs = 500;

/**
 * Returns the database URL for schema work: the direct one when there is a pooler, because locks need a session. Reads
 * nothing else from the environment, so a migration job needs no other secret.
 */
export function databaseUrl(env: Env): string {
  const problems: string[] = [];
  const direct = secretVariable(env, 'RIALTO_DATABASE_DIRECT_URL', problems);
  const given = direct || secretVariable(env, 'DATABASE_URL', problems);
  const name = direct ? 'RIALTO_DATABASE_DIRECT_URL' : 'DATABASE_URL';
  if (problems.length > 0) throw new CommandError(problems.join('\n'));
  if (!given) throw new CommandError('DATABASE_URL is not set; the embedded database is migrated by every start');
  const parsed = environment[name].schema.safeParse(given);
  if (!parsed.success) throw new CommandError(`${name} ${parsed.error.issues[0]?.message}`);
  return given;
}

/** Applies every migration of the gateway and of the queue; safe to run twice and at the same time. */
export async function migrate(env: Env): Promise<void> {
  const url = databaseUrl(env);
  await checkDatabase(url, env.NODE_ENV === 'test');
  const before = await schemaState(url);
  await migrateDatabase(url);
  const { applied, needed } = await schemaState(url);
  const appliedNow = applied - before.applied;
  note(
    `the schema is current: ${applied} of ${needed} migrations${appliedNow > 0 ? `, ${appliedNow} of them now` : ''}`,
  );
}

/** Returns when the database answers and its schema is current. Throws what is missing when the time is over. */
export async function wait(env: Env, timeoutMs: number): Promise<void> {
  const url = databaseUrl(env);
  for (const deadline = systemClock.now() + timeoutMs; ; await sleep(pauseMs)) {
    const missing = await missingPart(url);
    if (missing === undefined) return note('the database answers and its schema is current');
    if (systemClock.now() + pauseMs > deadline)
      throw new CommandError(`${missing}; waited ${Math.round(timeoutMs / 1_000)} s`);
  }
}

async function missingPart(url: string): Promise<string | undefined> {
  try {
    const { applied, needed, queue } = await schemaState(url);
    if (applied < needed) return `the schema is behind: ${applied} of ${needed} migrations`;
    return queue ? undefined : 'the schema of the queue is missing';
  } catch (error) {
    return explain(error)[0];
  }
}
