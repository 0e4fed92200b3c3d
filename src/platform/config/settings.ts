import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readConfigFile, resolveSecrets, staticBearer, type ConfigFile } from './config-file.js';
import { readMcpConfig } from './declared-servers.js';
import { readEnvironment, type Environment } from './env.schema.js';
import { isProductionRuntime } from './runtime.js';

/** The validated settings of this process; read once, passed by injection. */
export interface Settings extends Omit<Environment, 'HOST' | 'RIALTO_OUTBOUND_ALLOW' | 'RIALTO_ENCRYPTION_KEY'> {
  readonly production: boolean;
  readonly HOST: string;
  readonly RIALTO_OUTBOUND_ALLOW: string;
  /** 32 bytes. */
  readonly encryptionKey: Buffer;
  /** The static bearer that `apiKeyEnv` names, when it is set. */
  readonly legacyBearer?: string;
  readonly configFile: ConfigFile;
}

export const SETTINGS = Symbol('Settings');

/** The start cannot go on; each problem is one line that names the setting. */
export class SettingsError extends Error {
  constructor(readonly problems: string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

/** Reads and checks every setting. Throws SettingsError with all problems at once. */
export function loadSettings(env: Record<string, string | undefined>): Settings {
  const production = isProductionRuntime(env);
  const { values, problems } = readEnvironment(env);
  const file = readConfigFile(values.RIALTO_CONFIG_FILE, problems);
  const configFile = resolveSecrets(file, readMcpConfig(values.RIALTO_MCP_CONFIG_FILE, problems), env, problems);
  if (
    production &&
    !values.RIALTO_ENCRYPTION_KEY &&
    !problems.some((problem) => problem.startsWith('RIALTO_ENCRYPTION_KEY'))
  ) {
    problems.push(
      'RIALTO_ENCRYPTION_KEY is required in production: 32 bytes in base64, e.g. from `openssl rand -base64 32`',
    );
  }
  if (production && values.RIALTO_DEV_ANONYMOUS) problems.push('RIALTO_DEV_ANONYMOUS is refused in production');
  if (production && !values.DATABASE_URL)
    problems.push('DATABASE_URL is required in production; the embedded database is for development');
  const keyName = values.RIALTO_API_KEY_ENV ?? configFile.apiKeyEnv;
  const legacyBearer = keyName === undefined ? undefined : staticBearer(keyName, env, problems);
  if (problems.length > 0) throw new SettingsError(problems);
  return {
    ...values,
    production,
    HOST: values.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    RIALTO_OUTBOUND_ALLOW: values.RIALTO_OUTBOUND_ALLOW ?? (production ? '' : '127.0.0.0/8,::1'),
    encryptionKey: values.RIALTO_ENCRYPTION_KEY
      ? Buffer.from(values.RIALTO_ENCRYPTION_KEY, 'base64')
      : developmentKey(values.RIALTO_DATA_DIR),
    legacyBearer,
    configFile,
  };
}

function developmentKey(dataDir: string): Buffer {
  const file = join(resolve(dataDir), 'encryption-key');
  try {
    if (!existsSync(file)) writePrivateFile(file, `${randomBytes(32).toString('base64')}\n`);
    const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64');
    if (key.length === 32) return key;
  } catch (error) {
    throw new SettingsError([`RIALTO_DATA_DIR cannot be used (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`]);
  }
  throw new SettingsError([`RIALTO_DATA_DIR holds an encryption-key that is not 32 bytes in base64; restore it`]);
}

/** Writes a file that only its owner may read, with the folders above it. */
export function writePrivateFile(file: string, text: string): void {
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600);
}
