import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { environment } from '../platform/config/env.schema.js';
import { loadSettings } from '../platform/config/settings.js';
import { effectiveSettings } from './config.js';
import { table } from './io.js';
import { secretManifest } from './secrets.js';
import { secondsOf } from './token.js';

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  stringData: Record<string, string>;
}

function production(given: Record<string, string>): Record<string, string> {
  return {
    NODE_ENV: 'production',
    DATABASE_URL: given['database-url']!,
    REDIS_URL: given['redis-url']!,
    A2A_SECRET: given['a2a-secret']!,
    RIALTO_ENCRYPTION_KEY: given['encryption-key']!,
    RIALTO_ADMIN_PASSWORD: given['admin-password']!,
  };
}

describe('secrets init', () => {
  const read = (options: object) => parse(secretManifest({ name: 'rialto', ...options })) as Manifest;

  it('prints a Secret that a start accepts, with new values each time', () => {
    const urls = { databaseUrl: 'postgres://u:p%40ss@db:5432/rialto', redisUrl: 'rediss://:p@redis:6379/0' };
    const { kind, metadata, stringData } = read({ ...urls, namespace: 'prod' });
    expect({ kind, metadata }).toEqual({ kind: 'Secret', metadata: { name: 'rialto', namespace: 'prod' } });
    expect(loadSettings(production(stringData))).toMatchObject({ DATABASE_URL: urls.databaseUrl, production: true });
    expect(read(urls).stringData['a2a-secret']).not.toBe(stringData['a2a-secret']);
  });

  it('leaves placeholders that every start refuses', () => {
    const env = production(read({}).stringData);
    expect(() => loadSettings(env)).toThrow(/^DATABASE_URL must be a URL.*\nREDIS_URL must be a URL/);
  });

  it('refuses other URLs and invalid names', () => {
    expect(() => secretManifest({ name: 'rialto', databaseUrl: 'mysql://x' })).toThrow(/DATABASE_URL must be a URL/);
    expect(() => secretManifest({ name: 'a\nb' })).toThrow(/not a name/);
  });
});

describe('config', () => {
  const env = {
    NODE_ENV: 'production',
    DATABASE_URL: 'postgres://rialto:hunter2@db/rialto?sslpassword=hunter3&access_token=hunter7',
    A2A_SECRET: 'hunter4-hunter4-hunter4-hunter4-hunter4',
    RIALTO_ENCRYPTION_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64'),
    RIALTO_ADMIN_PASSWORD: 'hunter5-hunter5',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://me:hunter6@otel',
    PORT: '8080',
  };
  const shown = effectiveSettings(env, loadSettings(env));

  it('shows every setting with its source', () => {
    expect(shown.map(({ name }) => name)).toEqual(Object.keys(environment));
    const of = (name: string) => shown.find((setting) => setting.name === name);
    expect(of('PORT')).toEqual({ name: 'PORT', value: '8080', source: 'environment' });
    expect(of('HOST')).toEqual({ name: 'HOST', value: '0.0.0.0', source: 'default' });
    expect(of('REDIS_URL')).toEqual({ name: 'REDIS_URL', value: '', source: 'not set' });
  });

  it('P17 shows the effective value when the variable is not set', () => {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-config-'));
    const before = process.cwd();
    process.chdir(folder);
    try {
      writeFileSync('rialto.config.json', JSON.stringify({ apiKeyEnv: 'PARTNER_KEY' }));
      writeFileSync('mcp.config.json', '{"mcpServers":{}}');
      const local = { NODE_ENV: 'development', RIALTO_DATA_DIR: folder, PARTNER_KEY: 'hunter7-hunter7-hunter7' };
      const settings = effectiveSettings(local, loadSettings(local));
      const of = (name: string) => settings.find((setting) => setting.name === name);
      expect(of('RIALTO_STDIO_COMMANDS')).toMatchObject({ value: 'any', source: 'default' });
      expect(of('RIALTO_CONFIG_FILE')).toMatchObject({ value: 'rialto.config.json', source: 'default' });
      expect(of('RIALTO_MCP_CONFIG_FILE')).toMatchObject({ value: 'mcp.config.json', source: 'default' });
      expect(of('RIALTO_API_KEY_ENV')).toMatchObject({ value: 'PARTNER_KEY', source: 'configuration file' });
      expect(JSON.stringify(settings)).not.toContain('hunter7');
    } finally {
      process.chdir(before);
      rmSync(folder, { recursive: true });
    }
  });

  it('shows no secret', () => {
    expect(JSON.stringify(shown)).not.toMatch(/hunter/);
    expect(JSON.stringify(shown)).not.toContain(env.RIALTO_ENCRYPTION_KEY);
  });
});

describe('--ttl', () => {
  it.each([
    ['15m', 900],
    ['1h', 3_600],
    ['30', 30],
    ['45s', 45],
  ])('%s is %d seconds', (text, seconds) => expect(secondsOf(text)).toBe(seconds));

  it.each(['', '0', '2h', '61m', '-1', '1d', '1.5h'])('%j is refused', (text) => {
    expect(() => secondsOf(text)).toThrow(/1s to 1h/);
  });
});

it('formats a table with columns two spaces apart and no spaces at the end of a line', () => {
  expect(
    table([
      ['A', 'LONG'],
      ['bbb', 'c'],
    ]),
  ).toBe('A    LONG\nbbb  c');
  expect(table([])).toBe('');
});
