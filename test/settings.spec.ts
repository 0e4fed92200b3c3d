import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment } from '../src/platform/config/env.schema.js';
import { isProductionRuntime } from '../src/platform/config/runtime.js';
import { loadSettings, SettingsError } from '../src/platform/config/settings.js';

const folder = mkdtempSync(join(tmpdir(), 'rialto-settings-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const goodSecret = 'kq3-Vt9fB2mZ7xR5wN8pL4sD6gH1jC0yQe';
const goodKey = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
type Env = Record<string, string | undefined>;

const development = (env: Env = {}): Env => ({ NODE_ENV: 'development', RIALTO_DATA_DIR: folder, ...env });
const production = (env: Env = {}): Env => ({
  NODE_ENV: 'production',
  DATABASE_URL: 'postgres://rialto@db/rialto',
  RIALTO_ENCRYPTION_KEY: goodKey,
  A2A_SECRET: goodSecret,
  ...env,
});

function problemsOf(env: Env): readonly string[] {
  try {
    loadSettings(env);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

function configFile(content: unknown): string {
  const file = join(mkdtempSync(join(folder, 'config-')), 'rialto.config.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

describe('settings', () => {
  it('have their documented values when nothing is set', () => {
    expect(loadSettings(development())).toMatchObject({
      production: false,
      PORT: 3000,
      HOST: '127.0.0.1',
      METRICS_PORT: 9464,
      GRPC_PORT: undefined,
      RIALTO_ROLE: 'all',
      RIALTO_OUTBOUND_ALLOW: '127.0.0.0/8,::1',
      RIALTO_MAX_BODY_BYTES: 1_048_576,
      RIALTO_WEBHOOK_MAX_PER_HOST: 8,
      RIALTO_WEBHOOK_MAX_PER_ORG: 32,
      RIALTO_TASK_RETENTION_DAYS: 30,
      RIALTO_AUDIT_RETENTION_DAYS: undefined,
      RIALTO_CARD_CHANGES: 'accept',
      RIALTO_CARD_SIGNATURES: 'prefer',
      RIALTO_CARD_KEY_ORIGINS: [],
      cardKeys: [],
      RIALTO_MAX_AGENTS_PER_ORG: 1_000,
      RIALTO_MAX_OPEN_TASKS_PER_ORG: 10_000,
      RIALTO_MAX_OPEN_TASKS: 100_000,
      RIALTO_AGENTS_DIR: 'agents',
      RIALTO_CONFORMANCE_AGENT: undefined,
      RIALTO_A2A_ACCEPT_CLEARTEXT: true,
      RIALTO_MCP_TOOL_NAMES: 'portable',
      RIALTO_A2A_PROFILE: '1.0.1',
      RIALTO_DEV_ANONYMOUS: false,
    });
    expect(loadSettings(production())).toMatchObject({
      production: true,
      HOST: '0.0.0.0',
      RIALTO_OUTBOUND_ALLOW: '',
      RIALTO_CARD_CHANGES: 'approve',
    });
  });

  it('reports all problems at once, one line each, and each names its setting', () => {
    const env = { PORT: 'x', RIALTO_ROLE: 'boss', REDIS_URL: 'http://redis', RIALTO_ROLL: 'api', A2A_SECRET: 'short' };
    const problems = problemsOf(development(env));
    expect(problems.map((problem) => problem.split(' ')[0]).sort()).toEqual(Object.keys(env).sort());
    for (const problem of problems) expect(problem).not.toContain('\n');
  });

  it.each([
    ['RIALTO_ROLL', 'RIALTO_ROLE'],
    ['RIALTO_DATADIR', 'RIALTO_DATA_DIR'],
    ['RIALTO_PUBLIC_URI', 'RIALTO_PUBLIC_URL'],
    ['RIALTO_MAX_BODY', 'RIALTO_MAX_BODY_BYTES'],
    ['RIALTO_rate_limit_org', 'RIALTO_RATE_LIMIT_ORG'],
  ])('reports that %s is not a setting and suggests %s', (unknown, near) => {
    expect(problemsOf(development({ [unknown]: '1' }))).toEqual([`${unknown} is not a setting; did you mean ${near}?`]);
  });

  it.each([
    'RIALTO_TOKEN',
    'RIALTO_PORT',
    'RIALTO_PORT_3000_TCP_ADDR',
    'RIALTO_SERVICE_HOST',
    'RIALTO_SERVICE_PORT_HTTP',
    'RIALTO_POSTGRESQL_SERVICE_HOST',
    'ANYTHING_ELSE',
  ])('ignores %s', (name) => {
    expect(problemsOf(development({ [name]: 'tcp://10.0.0.1:3000' }))).toEqual([]);
  });

  it('reads an empty value as absent, but refuses an empty secret', () => {
    expect(loadSettings(development({ PORT: '', REDIS_URL: '' }))).toMatchObject({ PORT: 3000, REDIS_URL: undefined });
    expect(problemsOf(development({ A2A_SECRET: '' }))).toEqual([expect.stringMatching(/^A2A_SECRET is empty/)]);
  });

  it.each(['1', 'x'.repeat(31), `changeme-${'x'.repeat(40)}`, `your-secret-${'x'.repeat(40)}`])(
    'refuses the secret %s',
    (secret) =>
      expect(problemsOf(development({ A2A_SECRET: secret }))).toEqual([expect.stringMatching(/^A2A_SECRET /)]),
  );

  it('counts the bytes of a secret, not its characters', () => {
    expect(problemsOf(development({ A2A_SECRET: 'ü'.repeat(16) }))).toEqual([]);
    expect(problemsOf(development({ A2A_SECRET: 'ü'.repeat(15) }))).toHaveLength(1);
  });

  it('never repeats a value in a problem, for any setting', () => {
    const canary = 'CANARY-7f3a';
    const env = Object.fromEntries(Object.keys(environment).map((name) => [name, `${canary}\n${canary}`]));
    const problems = problemsOf({ ...env, NODE_ENV: canary, RIALTO_CONFIG_FILE: '', RIALTO_MCP_CONFIG_FILE: '' });
    expect(problems.length).toBeGreaterThan(20);
    expect(problems.join('\n')).not.toContain(canary);
  });

  it('never repeats the content of a configuration file', () => {
    const canary = 'CANARY-7f3a';
    const files = [
      `{ "apiKeyEnv": "${canary}" }`,
      `{ "agents": [{ "url": "${canary}", "credential": { "type": "bearer", "tokenEnv": "${canary}" } }] }`,
      `{ "agents": ${canary} }`,
      `${canary}`,
    ];
    for (const file of files) {
      const problems = problemsOf(development({ RIALTO_CONFIG_FILE: configFile(file) }));
      expect(problems.length).toBeGreaterThan(0);
      expect(problems.join('\n')).not.toContain(canary);
    }
  });

  it.each([
    ['PORT', 'abc', 'must be a whole number'],
    ['RIALTO_CARD_REFRESH_SECONDS', '1.5', 'must be a whole number'],
    ['METRICS_PORT', '99999', 'must be at most 65535'],
    ['RIALTO_TOOL_TIMEOUT_MS', '-5', 'must be at least 100'],
    ['RIALTO_ROLE', 'web', 'must be one of all, api, worker'],
  ])('says in plain words what is wrong with %s=%s', (name, value, words) => {
    expect(problemsOf(development({ [name]: value }))).toEqual([`${name} ${words}`]);
  });

  it('refuses development settings in production', () => {
    expect(
      problemsOf(
        production({ DATABASE_URL: undefined, RIALTO_ENCRYPTION_KEY: undefined, RIALTO_DEV_ANONYMOUS: 'true' }),
      ),
    ).toEqual([
      expect.stringMatching(/^RIALTO_ENCRYPTION_KEY is required/),
      expect.stringMatching(/^RIALTO_DEV_ANONYMOUS is refused/),
      expect.stringMatching(/^DATABASE_URL is required/),
    ]);
    expect(problemsOf(production({ RIALTO_ENCRYPTION_KEY: 'c2hvcnQ=' }))).toEqual([
      expect.stringMatching(/^RIALTO_ENCRYPTION_KEY must be 32 bytes/),
    ]);
  });

  it('starts in production without a secret: the doors refuse instead', () => {
    expect(problemsOf(production({ A2A_SECRET: undefined }))).toEqual([]);
  });

  it('creates a development key once, readable by its owner only, and keeps it', () => {
    const env = development({ RIALTO_DATA_DIR: join(folder, 'fresh') });
    const { encryptionKey } = loadSettings(env);
    const file = join(folder, 'fresh', 'encryption-key');
    expect(encryptionKey).toHaveLength(32);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(Buffer.from(readFileSync(file, 'utf8'), 'base64')).toEqual(encryptionKey);
    expect(loadSettings(env).encryptionKey).toEqual(encryptionKey);
  });

  it('reads the alias AGENT_NATIVE_A2A_ALLOWED_ORIGINS; the setting itself has priority', () => {
    const alias = { AGENT_NATIVE_A2A_ALLOWED_ORIGINS: 'https://a.internal' };
    expect(loadSettings(development(alias)).RIALTO_OUTBOUND_ALLOW).toBe('https://a.internal');
    expect(loadSettings(development({ ...alias, RIALTO_OUTBOUND_ALLOW: '::1' })).RIALTO_OUTBOUND_ALLOW).toBe('::1');
  });

  it('reads lists with spaces and empty items', () => {
    expect(loadSettings(development({ RIALTO_JWT_ISSUERS: ' a, b ,,c' })).RIALTO_JWT_ISSUERS).toEqual(['a', 'b', 'c']);
  });
});

describe('the static bearer', () => {
  it('is read from the variable that apiKeyEnv names, in the environment or in the file', () => {
    const env = { PARTNER_KEY: 'a-key-of-16-bytes' };
    expect(loadSettings(development({ ...env, RIALTO_API_KEY_ENV: 'PARTNER_KEY' })).legacyBearer).toBe(env.PARTNER_KEY);
    const RIALTO_CONFIG_FILE = configFile({ apiKeyEnv: 'PARTNER_KEY' });
    expect(loadSettings(development({ ...env, RIALTO_CONFIG_FILE })).legacyBearer).toBe(env.PARTNER_KEY);
  });

  it('is a problem when its variable is absent or too short to be a key', () => {
    expect(problemsOf(development({ RIALTO_API_KEY_ENV: 'PARTNER_KEY' }))).toEqual([
      'PARTNER_KEY is named by apiKeyEnv and is not set',
    ]);
    expect(problemsOf(development({ RIALTO_API_KEY_ENV: 'PARTNER_KEY', PARTNER_KEY: 'short' }))).toEqual([
      'PARTNER_KEY is named by apiKeyEnv and is shorter than 16 bytes',
    ]);
  });
});

describe('the configuration file', () => {
  it('declares agents, and their secrets come from the environment', () => {
    const file = configFile({
      agents: [{ url: 'https://a.example', credential: { type: 'bearer', tokenEnv: 'A_TOKEN' } }],
      policies: [{ name: 'all', text: 'permit(principal, action, resource);' }],
    });
    const env = development({ RIALTO_CONFIG_FILE: file, A_TOKEN: 'tok-1' });
    expect(loadSettings(env).configFile).toEqual({
      agents: [{ url: 'https://a.example', credential: { type: 'bearer', token: 'tok-1' } }],
      published: [],
      orgs: [],
      stdioCommands: [],
      mcpServers: [],
      policies: [{ name: 'all', text: 'permit(principal, action, resource);' }],
    });
    expect(problemsOf({ ...env, A_TOKEN: undefined })).toEqual([
      'A_TOKEN is named by the configuration file and is not set',
    ]);
  });

  it('AN-96 declares published agents by their names, and the key of their doors comes from the environment', () => {
    const agent = { name: 'support', description: 'Answers.', streaming: false };
    const file = configFile({
      agents: [{ ...agent, apiKeyEnv: 'SUPPORT_KEY' }, { url: 'https://a.example' }, { name: 'b' }],
    });
    const env = development({ RIALTO_CONFIG_FILE: file, SUPPORT_KEY: 'a-key-of-16-bytes' });
    expect(loadSettings(env).configFile).toMatchObject({
      agents: [{ url: 'https://a.example' }],
      published: [{ ...agent, apiKey: 'a-key-of-16-bytes' }, { name: 'b' }],
    });
    expect(problemsOf({ ...env, SUPPORT_KEY: undefined })).toEqual([
      'SUPPORT_KEY is named by apiKeyEnv and is not set',
    ]);
    expect(problemsOf({ ...env, SUPPORT_KEY: 'short' })).toEqual([
      'SUPPORT_KEY is named by apiKeyEnv and is shorter than 16 bytes',
    ]);
  });

  it('may be absent unless it is named', () => {
    const nothing = { agents: [], published: [], policies: [], orgs: [], stdioCommands: [], mcpServers: [] };
    expect(loadSettings(development()).configFile).toEqual(nothing);
    const absent = join(folder, 'absent.json');
    expect(problemsOf(development({ RIALTO_CONFIG_FILE: absent }))).toEqual([
      `RIALTO_CONFIG_FILE names ${absent}, which does not exist`,
    ]);
  });

  it.each([
    ['no JSON', '{ "agents": ', /cannot be read as JSON/],
    ['no object', '[]', /the file: /],
    ['an unknown member', { agent: [] }, /the file: .*agent/],
    ['an agent without a URL', { agents: [{}] }, /agents\.0\.url: /],
    [
      'a credential with its secret inside',
      { agents: [{ url: 'https://a', credential: { type: 'bearer', token: 'x' } }] },
      /agents\.0\.credential/,
    ],
    ['a published agent with an unknown member', { agents: [{ name: 'a', command: 'x' }] }, /agents\.0: .*command/],
    ['a published agent with a wrong member', { agents: [{ name: 'a', streaming: 'yes' }] }, /agents\.0\.streaming: /],
    ['an agent that is not an object', { agents: ['a'] }, /agents\.0: /],
    ['an impossible timeout', { agents: [{ url: 'https://a', timeoutMs: -1 }] }, /agents\.0\.timeoutMs: /],
  ])('with %s is a problem with its place', (_what, content, expected) => {
    const file = configFile(content);
    const problems = problemsOf(development({ RIALTO_CONFIG_FILE: file }));
    expect(problems.length).toBeGreaterThan(0);
    expect(problems[0]).toMatch(expected);
    for (const problem of problems) expect(problem.startsWith(file)).toBe(true);
  });

  it('AE-01 MCP servers come from it and from the file of MCP clients, with their variables filled in', () => {
    const web = {
      type: 'http',
      url: 'https://${HOST_NAME:-a.example}/mcp',
      headers: { authorization: 'Bearer ${A_TOKEN}' },
    };
    const usual = {
      'Git Hub__MCP': { command: 'npx', args: ['-y', '${env:A_TOKEN}'], timeout: 5_000, alwaysAllow: ['*'] },
    };
    const others = { gemini: { httpUrl: 'https://b.example' }, off: { command: 'x', disabled: true } };
    const env = development({
      RIALTO_CONFIG_FILE: configFile({ mcpServers: { web } }),
      RIALTO_MCP_CONFIG_FILE: configFile({ mcpServers: { ...usual, ...others }, theirs: 1 }),
      A_TOKEN: 'tok-1',
    });
    expect(loadSettings(env).configFile.mcpServers).toEqual([
      {
        id: 'web',
        name: 'web',
        isAgent: false,
        transport: 'http',
        url: 'https://a.example/mcp',
        headers: { authorization: 'Bearer tok-1' },
      },
      {
        id: 'git-hub-mcp',
        name: 'Git Hub__MCP',
        isAgent: true,
        command: 'npx',
        args: ['-y', 'tok-1'],
        timeoutMs: 5_000,
      },
      { id: 'gemini', name: 'gemini', isAgent: true, url: 'https://b.example' },
    ]);
    expect(problemsOf({ ...env, A_TOKEN: undefined })).toEqual([
      'A_TOKEN is named by the MCP server "web" and is not set',
      'A_TOKEN is named by the MCP server "Git Hub__MCP" and is not set',
    ]);
  });

  it.each([
    [
      'a secret of the gateway in a server',
      { web: { url: 'https://a', env: { API_KEY: 'canary' } } },
      {},
      /web: API_KEY holds a secret: .*\$\{API_KEY\}/,
    ],
    ['an unknown member of a gateway server', { web: { url: 'https://a', uri: 'x' } }, {}, /mcpServers\.web: .*uri/],
    ['a wrong member of a server from MCP clients', {}, { web: { command: ['npx'] } }, /mcpServers\.web\.command: /],
    ['two servers with one id', { 'a b': { url: 'https://a' } }, { 'A-B': { url: 'https://b' } }, /"a-b"/],
  ])('MCP servers with %s are a problem that repeats no secret', (_what, ours, usual, expected) => {
    const problems = problemsOf(
      development({
        RIALTO_CONFIG_FILE: configFile({ mcpServers: ours }),
        RIALTO_MCP_CONFIG_FILE: configFile({ mcpServers: usual }),
      }),
    );
    expect(problems).toEqual([expect.stringMatching(expected)]);
    expect(problems.join()).not.toContain('canary');
  });

  it('a file of MCP servers that is not JSON, or is named and absent, is a problem', () => {
    const absent = join(folder, 'absent.json');
    expect(problemsOf(development({ RIALTO_MCP_CONFIG_FILE: absent }))).toEqual([expect.stringContaining(absent)]);
    const torn = configFile('{\n  "mcpServers": canary');
    const problems = problemsOf(development({ RIALTO_MCP_CONFIG_FILE: torn }));
    expect(problems).toEqual([expect.stringMatching(/cannot be read as JSON: (at position|it is not JSON)/)]);
    expect(problems.join()).not.toContain('canary');
    const other = configFile({ tools: {} });
    expect(problemsOf(development({ RIALTO_MCP_CONFIG_FILE: other }))).toEqual([
      `${other}: mcpServers: must be an object with each server under its name`,
    ]);
  });

  it('that is a folder is a problem, not a crash', () => {
    expect(problemsOf(development({ RIALTO_CONFIG_FILE: folder }))).toEqual([expect.stringContaining(folder)]);
  });
});

describe('a production runtime', () => {
  it.each([
    ['nothing said', {}, true],
    ['NODE_ENV=production', { NODE_ENV: 'production' }, true],
    ['NODE_ENV=staging', { NODE_ENV: 'staging' }, true],
    ['NODE_ENV empty', { NODE_ENV: '' }, true],
    ['NODE_ENV=development', { NODE_ENV: 'development' }, false],
    ['NODE_ENV=test', { NODE_ENV: 'test' }, false],
    ['Netlify', { NODE_ENV: 'development', NETLIFY: 'true' }, true],
    ['Netlify on a local machine', { NODE_ENV: 'development', NETLIFY: 'true', NETLIFY_LOCAL: 'true' }, false],
    ['Lambda', { NODE_ENV: 'test', AWS_LAMBDA_FUNCTION_NAME: 'f' }, true],
    ['Cloudflare Pages', { NODE_ENV: 'development', CF_PAGES: '1' }, true],
    ['Cloudflare Pages, not 1', { NODE_ENV: 'development', CF_PAGES: 'no' }, false],
    ['Vercel', { NODE_ENV: 'development', VERCEL: '1' }, true],
    ['Vercel by its environment', { NODE_ENV: 'development', VERCEL_ENV: 'preview' }, true],
    ['Render', { NODE_ENV: 'development', RENDER: 'true' }, true],
    ['Fly', { NODE_ENV: 'development', FLY_APP_NAME: 'rialto' }, true],
    ['Cloud Run', { NODE_ENV: 'development', K_SERVICE: 'rialto' }, true],
    ['Kubernetes', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, true],
    ['Kubernetes in development', { NODE_ENV: 'development', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, false],
    ['a flag that is off', { NODE_ENV: 'development', VERCEL: '0', RENDER: 'false', FLY_APP_NAME: '' }, false],
  ])('AN-44 AN-45: %s', (_what, env: Env, expected) => {
    expect(isProductionRuntime(env, {})).toBe(expected);
    const { NODE_ENV } = env;
    const valid = NODE_ENV !== 'staging';
    if (valid)
      expect(loadSettings({ ...production(), A2A_SECRET: goodSecret, ...env, NODE_ENV }).production).toBe(expected);
  });

  it.each(['__cf_env', '__env__'])('AN-45: the global %s', (name) => {
    expect(isProductionRuntime({ NODE_ENV: 'development' }, { [name]: {} })).toBe(true);
  });

  it('AN-46: an unknown host without NODE_ENV is production, so it refuses anonymous callers', () => {
    expect(problemsOf({ RIALTO_DEV_ANONYMOUS: 'true', RIALTO_DATA_DIR: folder })).toContainEqual(
      expect.stringMatching(/^RIALTO_DEV_ANONYMOUS is refused in production/),
    );
  });
});
