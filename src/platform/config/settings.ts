import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readCardKeys, type OperatorKey } from './card-keys.js';
import { readConfigFile, resolveSecrets, staticBearer, type ConfigFile } from './config-file.js';
import { readMcpConfig } from './client-config.js';
import { readEnvironment, type Environment } from './env.schema.js';
import { isProductionRuntime } from './runtime.js';

/** Settings with defaults that depend on other settings. */
type DerivedSettings =
  | 'HOST'
  | 'RIALTO_OUTBOUND_ALLOW'
  | 'RIALTO_ENCRYPTION_KEY'
  | 'RIALTO_CARD_CHANGES'
  | 'RIALTO_STDIO_ISOLATION'
  | 'RIALTO_A2A_SECRET_ADMINS';

/** The validated settings of this process; read once, passed by injection. */
export interface Settings extends Omit<Environment, DerivedSettings> {
  readonly production: boolean;
  readonly HOST: string;
  readonly RIALTO_OUTBOUND_ALLOW: string;
  readonly RIALTO_CARD_CHANGES: NonNullable<Environment['RIALTO_CARD_CHANGES']>;
  readonly RIALTO_A2A_SECRET_ADMINS: boolean;
  readonly RIALTO_STDIO_ISOLATION: NonNullable<Environment['RIALTO_STDIO_ISOLATION']>;
  /** 32 bytes. */
  readonly encryptionKey: Buffer;
  /** 32 bytes. Opens secrets that were sealed with another key than `encryptionKey`. */
  readonly otherEncryptionKey?: Buffer;
  /** The static bearer from the variable that `apiKeyEnv` names, when it is set. */
  readonly legacyBearer?: string;
  readonly configFile: ConfigFile;
  /** The keys of RIALTO_CARD_KEYS. */
  readonly cardKeys: readonly OperatorKey[];
}

export const SETTINGS = Symbol('Settings');

/** Thrown when the process cannot start. Each problem is one line that names the setting. */
export class SettingsError extends Error {
  constructor(readonly problems: string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

/** Reads and checks every setting. Throws SettingsError with all problems at once. */
export function loadSettings(env: Record<string, string | undefined>): Settings {
  return settingsOf(env, { usesDeclared: true });
}

/**
 * Reads the settings for a command that uses no declared agent and no MCP server: problems of `mcp.config.json`, and of
 * variables that either configuration file names, are no problem of the command.
 */
export function loadOperatorSettings(env: Record<string, string | undefined>): Settings {
  return settingsOf(env, { usesDeclared: false });
}

function settingsOf(env: Record<string, string | undefined>, { usesDeclared }: { usesDeclared: boolean }): Settings {
  const production = isProductionRuntime(env);
  const { values, problems } = readEnvironment(env);
  const ofDeclared = usesDeclared ? problems : [];
  const file = readConfigFile(values.RIALTO_CONFIG_FILE, problems);
  const configFile = resolveSecrets(file, readMcpConfig(values.RIALTO_MCP_CONFIG_FILE, ofDeclared), env, ofDeclared);
  if (
    production &&
    !values.RIALTO_ENCRYPTION_KEY &&
    !problems.some((problem) => problem.startsWith('RIALTO_ENCRYPTION_KEY'))
  ) {
    problems.push(
      'RIALTO_ENCRYPTION_KEY is required in production: 32 bytes in base64, e.g. from `openssl rand -base64 32`',
    );
  }
  if (production) problems.push(...weakSecrets(values));
  if (production && values.RIALTO_DEV_ANONYMOUS) problems.push('RIALTO_DEV_ANONYMOUS is refused in production');
  if (production && !values.DATABASE_URL && !problems.some((problem) => problem.startsWith('DATABASE_URL')))
    problems.push('DATABASE_URL is required in production; the embedded database is for development');
  const keyName = values.RIALTO_API_KEY_ENV ?? configFile.apiKeyEnv;
  const legacyBearer = keyName === undefined ? undefined : staticBearer(keyName, env, ofDeclared);
  const cardKeys = readCardKeys(values.RIALTO_CARD_KEYS, problems);
  if (problems.length > 0) throw new SettingsError(problems);
  return {
    ...values,
    production,
    HOST: values.HOST ?? (production ? '0.0.0.0' : '127.0.0.1'),
    RIALTO_OUTBOUND_ALLOW: values.RIALTO_OUTBOUND_ALLOW ?? (production ? '' : '127.0.0.0/8,::1'),
    RIALTO_CARD_CHANGES: values.RIALTO_CARD_CHANGES ?? (production ? 'approve' : 'accept'),
    RIALTO_A2A_SECRET_ADMINS: values.RIALTO_A2A_SECRET_ADMINS ?? !production,
    RIALTO_STDIO_ISOLATION: values.RIALTO_STDIO_ISOLATION ?? (production ? 'required' : 'preferred'),
    encryptionKey: values.RIALTO_ENCRYPTION_KEY
      ? Buffer.from(values.RIALTO_ENCRYPTION_KEY, 'base64')
      : developmentKey(values.RIALTO_DATA_DIR),
    ...(values.RIALTO_ENCRYPTION_KEY_OTHER && {
      otherEncryptionKey: Buffer.from(values.RIALTO_ENCRYPTION_KEY_OTHER, 'base64'),
    }),
    legacyBearer,
    configFile,
    cardKeys,
  };
}

/**
 * True when callers can authenticate. False in production when there is neither a secret nor a static bearer, for all
 * agents or for one (AN-43, AN-95).
 */
export function isAuthConfigured(
  settings: Pick<Settings, 'production' | 'A2A_SECRET' | 'legacyBearer' | 'configFile'>,
) {
  const { production, A2A_SECRET, legacyBearer, configFile } = settings;
  const hasAgentKey = configFile.published.some(({ apiKey }) => apiKey !== undefined);
  return !production || A2A_SECRET !== undefined || legacyBearer !== undefined || hasAgentKey;
}

/** True when a program that is not in the catalogue may be registered as an MCP server. */
export function allowsAnyProgram(settings: Pick<Settings, 'production' | 'RIALTO_STDIO_COMMANDS'>): boolean {
  return !settings.production || settings.RIALTO_STDIO_COMMANDS === 'any';
}

/**
 * Least number of different characters, or bytes, of a random secret. A secret with fewer is a pattern or a mistake.
 */
const minVariety = {
  A2A_SECRET: 8,
  RIALTO_ENCRYPTION_KEY: 8,
  RIALTO_ENCRYPTION_KEY_OTHER: 8,
  RIALTO_ADMIN_PASSWORD: 5,
};

function weakSecrets(values: Environment): string[] {
  const problems: string[] = [];
  for (const [name, min] of Object.entries(minVariety) as [keyof typeof minVariety, number][]) {
    const value = values[name];
    if (value === undefined) continue;
    const bytes = name.startsWith('RIALTO_ENCRYPTION_KEY') ? Buffer.from(value, 'base64') : Buffer.from(value);
    const length = name.startsWith('RIALTO_ENCRYPTION_KEY') ? 32 : 48;
    if (new Set(bytes).size < min)
      problems.push(`${name} can be guessed; make one with \`openssl rand -base64 ${length}\``);
  }
  const { A2A_SECRET: secret, RIALTO_ENCRYPTION_KEY: key, RIALTO_ADMIN_PASSWORD: password } = values;
  const given = [secret, key, password].filter((one) => one !== undefined);
  if (new Set(given).size < given.length)
    problems.push('A2A_SECRET, RIALTO_ENCRYPTION_KEY and RIALTO_ADMIN_PASSWORD must differ from each other');
  return problems;
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

/** Writes a file that only its owner may read, and creates the folders above it. */
export function writePrivateFile(file: string, text: string): void {
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600);
}
