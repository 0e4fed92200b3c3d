import { randomBytes } from 'node:crypto';
import { environment } from '../platform/config/env.schema.js';
import { CommandError, note, print } from './io.js';

export interface SecretsOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
}

const dnsLabel = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;

/** Prints the Kubernetes Secret that the chart names; the random values are created here and shown nowhere else. */
export function initSecrets(options: SecretsOptions): void {
  print(secretManifest(options));
  if (!options.databaseUrl) note('database-url is a placeholder that no start accepts; give --database-url');
  if (!options.redisUrl) note('redis-url is a placeholder; give --redis-url unless the queues live in PostgreSQL');
  note('keep encryption-key: without it, sealed values in the database cannot be opened again');
}

/** Returns the Secret as YAML; every call creates new random values. */
export function secretManifest({ name, namespace, databaseUrl, redisUrl }: SecretsOptions): string {
  for (const given of [name, namespace])
    if (given !== undefined && !dnsLabel.test(given)) throw new CommandError(`${given} is not a name for Kubernetes`);
  const values = {
    'database-url': urlOr('DATABASE_URL', databaseUrl, 'replace-me://user:password@host:5432/rialto'),
    'redis-url': urlOr('REDIS_URL', redisUrl, 'replace-me://:password@host:6379'),
    'a2a-secret': randomBytes(32).toString('hex'),
    'encryption-key': randomBytes(32).toString('base64'),
    'admin-password': randomBytes(18).toString('base64url'),
  };
  const lines = [
    'apiVersion: v1',
    'kind: Secret',
    'metadata:',
    `  name: ${name}`,
    ...(namespace === undefined ? [] : [`  namespace: ${namespace}`]),
    'type: Opaque',
    'stringData:',
    ...Object.entries(values).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`),
  ];
  return lines.join('\n');
}

/** Returns the URL or a placeholder. The settings refuse a placeholder, because they do not accept its scheme. */
function urlOr(setting: 'DATABASE_URL' | 'REDIS_URL', given: string | undefined, placeholder: string): string {
  if (given === undefined) return placeholder;
  const parsed = environment[setting].schema.safeParse(given);
  if (!parsed.success) throw new CommandError(`the value for ${setting} ${parsed.error.issues[0]?.message}`);
  return given;
}
