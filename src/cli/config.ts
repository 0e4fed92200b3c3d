import { environment, secretSettings, type EnvironmentName } from '../platform/config/env.schema.js';
import { declaredFileInUse } from '../platform/config/json-file.js';
import { allowsAnyProgram, loadSettings, type Settings } from '../platform/config/settings.js';
import { print, table, type Env } from './io.js';

/** One setting with the value that is in effect. Secrets are never shown, only whether they are set. */
export interface EffectiveSetting {
  readonly name: string;
  readonly value: string;
  readonly source: 'environment' | 'file' | 'configuration file' | 'default' | 'data folder' | 'not set';
}

/**
 * Settings that are hidden completely; of other settings with a secret, such as addresses, only the password is
 * hidden.
 */
const secrets: ReadonlySet<EnvironmentName> = new Set([
  'A2A_SECRET',
  'RIALTO_ENCRYPTION_KEY',
  'RIALTO_ENCRYPTION_KEY_OTHER',
  'RIALTO_ADMIN_PASSWORD',
  'RIALTO_AUDIT_ANCHOR_URL',
  'RIALTO_AUDIT_TIMESTAMP_URL',
] as const);
const mayBeFiles: ReadonlySet<string> = new Set(secretSettings);

/** Prints every setting with its value and its source. Throws SettingsError with all problems. */
export function showConfig(env: Env, { json }: { json?: boolean }): void {
  const settings = effectiveSettings(env, loadSettings(env));
  if (json) return print(JSON.stringify(settings, null, 2));
  print(table([['SETTING', 'VALUE', 'SOURCE'], ...settings.map(({ name, value, source }) => [name, value, source])]));
}

export function effectiveSettings(env: Env, settings: Settings): EffectiveSetting[] {
  const names = Object.keys(environment) as EnvironmentName[];
  return names.map((name) => {
    const given = env[name] !== undefined && env[name] !== '';
    const alias = name === 'RIALTO_OUTBOUND_ALLOW' && env.AGENT_NATIVE_A2A_ALLOWED_ORIGINS !== undefined;
    const found = name === 'RIALTO_ENCRYPTION_KEY' ? 'held' : settings[name];
    const { value, source: decided } = decidedElsewhere(name, settings) ?? { value: found, source: undefined };
    const missing = value === undefined ? 'not set' : name === 'RIALTO_ENCRYPTION_KEY' ? 'data folder' : 'default';
    const isFile = mayBeFiles.has(name) && Boolean(env[`${name}_FILE`]);
    const source = decided ?? (isFile ? 'file' : given || alias ? 'environment' : missing);
    return { name, value: secrets.has(name) ? hidden(value) : shown(value), source };
  });
}

/** Returns the effective value when it does not come from the variable itself; undefined when it does. */
function decidedElsewhere(
  name: EnvironmentName,
  settings: Settings,
): Pick<EffectiveSetting, 'value' | 'source'> | undefined {
  const usualFile = (named: string | undefined, usual: string) => {
    const file = declaredFileInUse(named, usual);
    return named === undefined && file !== undefined ? { value: file, source: 'default' as const } : undefined;
  };
  if (name === 'RIALTO_CONFIG_FILE') return usualFile(settings.RIALTO_CONFIG_FILE, 'rialto.config.json');
  if (name === 'RIALTO_MCP_CONFIG_FILE') return usualFile(settings.RIALTO_MCP_CONFIG_FILE, 'mcp.config.json');
  const { apiKeyEnv } = settings.configFile;
  if (name === 'RIALTO_API_KEY_ENV' && settings.RIALTO_API_KEY_ENV === undefined && apiKeyEnv !== undefined)
    return { value: apiKeyEnv, source: 'configuration file' };
  if (name === 'RIALTO_STDIO_COMMANDS' && settings.RIALTO_STDIO_COMMANDS !== 'any' && allowsAnyProgram(settings))
    return { value: 'any', source: 'default' };
  return undefined;
}

function hidden(value: unknown): string {
  return value === undefined ? '' : '(hidden)';
}

function shown(value: Settings[Exclude<EnvironmentName, 'RIALTO_ENCRYPTION_KEY'>]): string {
  const text = Array.isArray(value)
    ? value.join(',')
    : typeof value === 'object'
      ? Object.values(value).join(':')
      : String(value ?? '');
  return text
    .replace(/(:\/\/[^/@\s:]*):[^/@\s]*@/g, '$1:***@')
    .replace(/([?&]\w*(?:password|token|key|secret|code|sig)=)[^&\s]*/gi, '$1***');
}
