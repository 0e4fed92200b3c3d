import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jwtVerify } from 'jose';
import { callAgent } from '../../../src/a2a-client/client.js';
import { systemClock } from '../../../src/kernel/clock.js';
import { loadSettings, SettingsError } from '../../../src/platform/config/settings.js';
import { rialto } from '../../support/gateway/cli.js';
import { entryArgs } from '../../support/gateway/entry.js';
import { becomesReady, signToken, startTestGateway, testSecret } from '../../support/gateway/gateway.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';
import { text } from '../../support/stubs/stub-behaviours.js';

const key = randomBytes(32).toString('base64');
const production = { NODE_ENV: 'production', HOST: '127.0.0.1', RIALTO_ENCRYPTION_KEY: key };
const everything = {
  name: 'everything',
  text: 'permit(principal, action in [Action::"task_submit", Action::"task_read"], resource);',
};
const hello = {
  jsonrpc: '2.0',
  id: 1,
  method: 'message/send',
  params: { message: { role: 'user', parts: [{ kind: 'text', text: 'hello' }] } },
};
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** Writes a configuration file of the deployment and returns its path. */
function declared(content: object): string {
  const file = join(mkdtempSync(join(tmpdir(), 'rialto-config-')), 'rialto.config.json');
  writeFileSync(file, JSON.stringify(content));
  return file;
}

describe('production without a secret', () => {
  it('AN-43 starts, answers 503 at every agent door and at /readyz, and gives the reason', async () => {
    const gateway = await startTestGateway({ ...production, A2A_SECRET: undefined as never });
    try {
      const doors = [
        await gateway.call('POST', '/mcp', ping, null),
        await gateway.call('POST', '/mcp', ping, await signToken()),
        await gateway.call('GET', '/api/a2a/agents', undefined, null),
        await gateway.call('GET', '/readyz', undefined, null),
        await gateway.call('POST', '/a2a', { ...ping, method: 'message/send' }, null),
        await gateway.call('POST', '/_agent-native/a2a', { ...ping, method: 'message/send' }, await signToken()),
        await gateway.call('POST', '/_agent-native/a2a/_process-task', { taskId: 't' }, null),
        await gateway.call('POST', '/a2a/agents/echo/message:send', {}, null),
      ];
      expect(doors.map(({ status }) => status)).toEqual(doors.map(() => 503));
      expect(JSON.stringify(doors[0]!.body)).toContain('A2A_SECRET');
      expect(doors[3]!.body.checks.auth).toMatchObject({
        status: 'down',
        detail: expect.stringContaining('A2A_SECRET'),
      });
      expect((await gateway.call('GET', '/livez', undefined, null)).status).toBe(200);
    } finally {
      await gateway.close();
    }
  });

  it('AN-95 with apiKeyEnv alone: 200 with the key, 401 without', async () => {
    const legacy = { RIALTO_API_KEY_ENV: 'PARTNER_KEY', PARTNER_KEY: 'a-partner-key-of-some-length' };
    const file = declared({ agents: [{ name: 'echo', description: 'x' }], policies: [everything] });
    const config = { RIALTO_CONFIG_FILE: file };
    const gateway = await startTestGateway({ ...production, ...legacy, ...config, A2A_SECRET: undefined as never });
    try {
      const send = (path: string, token: string | null) => gateway.call('POST', path, hello, token);
      expect((await send('/a2a/agents/echo', legacy.PARTNER_KEY)).body.result.status.state).toBe('completed');
      for (const path of ['/a2a/agents/echo', '/a2a', '/_agent-native/a2a'])
        expect((await send(path, null)).status).toBe(401);
      const wake = await gateway.call('POST', '/_agent-native/a2a/_process-task', { taskId: 't' }, legacy.PARTNER_KEY);
      expect(wake.status).toBe(503);
      const answer = await gateway.call('POST', '/mcp', { ...ping, method: 'tools/list' }, legacy.PARTNER_KEY);
      expect(answer.status).toBe(200);
      expect(answer.body.result.tools.map(({ name }: { name: string }) => name)).toEqual([
        'list_agents',
        'send_to_agent',
      ]);
      expect((await gateway.call('POST', '/mcp', ping, null)).status).toBe(401);
      expect((await gateway.call('POST', '/mcp', ping, await signToken())).status).toBe(401);
      await becomesReady(gateway);
    } finally {
      await gateway.close();
    }
  });
});

describe('a declared agent', () => {
  it('AN-96: its card, its door and the processor work after the start; its own key opens only its door', async () => {
    const file = declared({
      agents: [
        { name: 'echo', description: 'Says it again.', streaming: false, apiKeyEnv: 'ECHO_KEY' },
        { name: 'other', description: 'Another.' },
      ],
      policies: [everything],
    });
    const own = { ECHO_KEY: 'the-key-of-the-echo-alone', RIALTO_CONFIG_FILE: file };
    const gateway = await startTestGateway({ ...production, ...own });
    try {
      const card = await gateway.call('GET', '/a2a/agents/echo/.well-known/agent-card.json', undefined, null);
      expect(card.body).toMatchObject({
        name: 'echo',
        description: 'Says it again.',
        capabilities: { streaming: false },
      });
      const send = (agent: string, token: string) => gateway.call('POST', `/a2a/agents/${agent}`, hello, token);
      expect((await send('echo', own.ECHO_KEY)).body.result.status.state).toBe('completed');
      expect((await send('other', own.ECHO_KEY)).status).toBe(401);
      expect((await gateway.call('GET', '/api/a2a/agents', undefined, own.ECHO_KEY)).status).toBe(401);
      const wake = await gateway.call('POST', '/_agent-native/a2a/_process-task', { taskId: 't' }, null);
      expect(wake.status).toBe(401);
    } finally {
      await gateway.close();
    }
  });
});

describe('production with the key of one declared agent alone', () => {
  it('N13 is ready, answers 401 without the key, and serves defaultAgent at every door', async () => {
    const agents = [{ name: 'echo', description: 'Says it again.', skills: [{ id: 'say' }], apiKeyEnv: 'ECHO_KEY' }];
    const file = declared({ defaultAgent: 'echo', agents, policies: [everything] });
    const own = { ECHO_KEY: 'the-key-of-the-echo-alone', RIALTO_CONFIG_FILE: file };
    const gateway = await startTestGateway({ ...production, ...own, A2A_SECRET: undefined as never });
    try {
      await becomesReady(gateway);
      for (const path of ['/a2a/agents/echo', '/a2a', '/_agent-native/a2a']) {
        expect((await gateway.call('POST', path, hello, own.ECHO_KEY)).body.result.status.state).toBe('completed');
        expect((await gateway.call('POST', path, hello, null)).status).toBe(401);
      }
      expect((await gateway.call('POST', '/mcp', ping, null)).status).toBe(401);
      const card = await gateway.call('GET', '/.well-known/agent-card.json', undefined, null);
      expect(card.body).toMatchObject({ name: 'echo', skills: [{ id: 'say' }], capabilities: { streaming: true } });
    } finally {
      await gateway.close();
    }
  });
});

describe('abuse 5: weak secrets', () => {
  const given = { ...production, DATABASE_URL: 'postgres://127.0.0.1/x' };
  it.each([
    ['empty', ''],
    ['one byte', 'x'],
    ['31 bytes', 'k'.repeat(31)],
    ['an example', 'changeme-changeme-changeme-changeme'],
    ['another example', 'your-secret-here-your-secret-here-00'],
  ])('%s: the start is refused, with the name of the variable but not the value', (_what, secret) => {
    let problems: string[] = [];
    try {
      loadSettings({ ...given, A2A_SECRET: secret });
    } catch (error) {
      expect(error).toBeInstanceOf(SettingsError);
      ({ problems } = error as SettingsError);
    }
    expect(problems).toEqual([expect.stringMatching(/^A2A_SECRET /)]);
    if (secret.length > 1) expect(problems.join()).not.toContain(secret);
  });

  it('the process exits 1 with that one line', async () => {
    const child = spawn(process.execPath, entryArgs('main.ts'), {
      env: { PATH: process.env.PATH, ...given, A2A_SECRET: 'weak-canary' },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(text).toMatch(/^rialto: A2A_SECRET must be at least 32 bytes/m);
    expect(text).not.toContain('weak-canary');
    expect(code).toBe(1);
  });
});

describe('X3.9 the secret of the deployment in production', () => {
  it.each([
    [{}, 403],
    [{ RIALTO_A2A_SECRET_ADMINS: 'true' }, 201],
  ])('creates no admins, unless the operator allows it: %j', async (more: Record<string, string>, status) => {
    const gateway = await startTestGateway({ ...production, ...more });
    try {
      const env = { ...production, ...more, A2A_SECRET: testSecret, DATABASE_URL: gateway.database.url };
      const made = await rialto(['token', '--org', 'default', '--sub', 'root', '--role', 'admin', '--create'], env);
      const act = (token: string) => gateway.call('POST', '/api/keys', { name: 'made', role: 'member' }, token);
      expect((await act(made.stdout.trim())).status).toBe(201);
      const forged = await signToken({ sub: 'root' });
      const byForged = await gateway.call('POST', '/api/keys', { name: 'forged', role: 'member' }, forged);
      expect(byForged.status).toBe(status);
      expect((await gateway.call('GET', '/api/a2a/agents', undefined, forged)).status).toBe(200);
      const again = await rialto(['token', '--org', 'default', '--sub', 'root'], env);
      expect(
        (await gateway.call('POST', '/api/keys', { name: 'again', role: 'member' }, again.stdout.trim())).status,
      ).toBe(201);
    } finally {
      await gateway.close();
    }
  });
});

describe('AN-44 AN-45 AN-46 the definition of production', () => {
  const table: [Record<string, string>, boolean][] = [
    [{}, true],
    [{ NODE_ENV: 'production' }, true],
    [{ NODE_ENV: 'staging' }, true],
    [{ NODE_ENV: 'development' }, false],
    [{ NODE_ENV: 'test' }, false],
    [{ NODE_ENV: 'development', NETLIFY: 'true' }, true],
    [{ NODE_ENV: 'development', NETLIFY: 'true', NETLIFY_LOCAL: 'true' }, false],
    [{ NODE_ENV: 'test', AWS_LAMBDA_FUNCTION_NAME: 'f' }, true],
    [{ NODE_ENV: 'development', CF_PAGES: '1' }, true],
    [{ NODE_ENV: 'development', CF_PAGES: '0' }, false],
    [{ NODE_ENV: 'development', VERCEL: '1' }, true],
    [{ NODE_ENV: 'development', VERCEL_ENV: 'preview' }, true],
    [{ NODE_ENV: 'development', RENDER: 'true' }, true],
    [{ NODE_ENV: 'development', FLY_APP_NAME: 'a' }, true],
    [{ NODE_ENV: 'development', K_SERVICE: 's' }, true],
    [{ NODE_ENV: 'development', KUBERNETES_SERVICE_HOST: '10.0.0.1' }, false],
    [{ KUBERNETES_SERVICE_HOST: '10.0.0.1' }, true],
  ];
  it.each(table)('%j is production: %s', async (env, expected) => {
    const { isProductionRuntime } = await import('../../../src/platform/config/runtime.js');
    expect(isProductionRuntime(env, {})).toBe(expected);
    expect(isProductionRuntime({ NODE_ENV: 'test' }, { __cf_env: {} })).toBe(true);
    expect(isProductionRuntime({ NODE_ENV: 'test' }, { __env__: {} })).toBe(true);
  });
});

describe('RIALTO_DEV_ANONYMOUS', () => {
  it('AN-42 accepts callers on loopback with one warning, and still refuses a bad token', async () => {
    const gateway = await startTestGateway({ RIALTO_DEV_ANONYMOUS: 'true' });
    try {
      for (let call = 0; call < 3; call++) expect((await gateway.call('POST', '/mcp', ping, null)).status).toBe(200);
      expect(gateway.log.filter((line) => line.includes('RIALTO_DEV_ANONYMOUS'))).toHaveLength(1);
      expect((await gateway.call('POST', '/mcp', ping, 'nonsense')).status).toBe(401);
      expect((await gateway.call('POST', '/api/keys', { name: 'x' }, null)).status).toBe(403);
    } finally {
      await gateway.close();
    }
  });

  it('abuse 40 accepts neither a page of a browser nor a proxied request', async () => {
    const gateway = await startTestGateway({ RIALTO_DEV_ANONYMOUS: 'true' });
    const statusWith = async (headers: Record<string, string>): Promise<number> =>
      (await gateway.call('GET', '/api/a2a/agents', undefined, null, headers)).status;
    try {
      expect(await statusWith({})).toBe(200);
      expect(await statusWith({ origin: 'http://evil.example' })).toBe(401);
      expect(await statusWith({ 'x-forwarded-for': '203.0.113.9' })).toBe(401);
      expect(await statusWith({ forwarded: 'for=203.0.113.9' })).toBe(401);
    } finally {
      await gateway.close();
    }
  });

  it('is refused in production', () => {
    const env = { ...production, A2A_SECRET: testSecret, RIALTO_DEV_ANONYMOUS: 'true', DATABASE_URL: 'postgres://h/d' };
    expect(() => loadSettings(env)).toThrow('RIALTO_DEV_ANONYMOUS is refused in production');
  });
});

describe('two processes on one database', () => {
  let ahead: number;
  beforeEach(() => {
    ahead = 0;
    for (const hand of ['now', 'elapsed'] as const) {
      const read = systemClock[hand].bind(systemClock);
      jest.spyOn(systemClock, hand).mockImplementation(() => read() + ahead);
    }
  });
  afterEach(() => void jest.restoreAllMocks());

  it('abuse 6: a rotated secret, a revoked key and a revoked token stop within 5 s on both, save a grace', async () => {
    const one = await startTestGateway();
    const two = await startTestGateway({}, one);
    try {
      await one.tokenOf('acme', 'ann', 'admin');
      const claims = { sub: 'ann', org_domain: 'acme' };
      const rotate = async (graceSeconds: number) =>
        (await one.call('POST', '/api/orgs/acme/secret', { graceSeconds })).body.secret as string;
      const first = await signToken(claims, await rotate(0));
      const statuses = async (token: string) =>
        (await Promise.all([one, two].map((each) => each.call('GET', '/api/orgs', undefined, token)))).map(
          ({ status }) => status,
        );
      const refusedInFiveSeconds = async (token: string): Promise<void> => {
        ahead += 5_000;
        expect(await statuses(token)).toEqual([401, 401]);
      };
      expect(await statuses(first)).toEqual([200, 200]);
      const second = await signToken(claims, await rotate(3_600));
      expect(await statuses(first)).toEqual([200, 200]);
      expect(await statuses(second)).toEqual([200, 200]);
      await rotate(0);
      await refusedInFiveSeconds(second);
      const key = (await one.call('POST', '/api/keys', { name: 'k' })).body;
      expect(await statuses(key.key)).toEqual([200, 200]);
      await two.call('DELETE', `/api/keys/${key.id}`);
      await refusedInFiveSeconds(key.key);
      const token = await signToken({ ...claims, jti: 'gone' });
      expect(await statuses(token)).toEqual([200, 200]);
      await one.call('POST', '/api/tokens/revocations', { jti: 'gone' }, await signToken(claims));
      await refusedInFiveSeconds(token);
    } finally {
      await two.close();
      await one.close();
    }
  });

  it('RE-34 a policy and an agent apply to the next call in their process, within a second in another', async () => {
    const agent = await startStubAgent({ name: 'Shared' });
    const one = await startTestGateway();
    const two = await startTestGateway({}, one);
    try {
      await one.call('POST', '/api/a2a/agents', { url: agent.url });
      const call = async (gateway: typeof one) =>
        (await gateway.rpc('tools/call', { name: 'shared.work', arguments: {} })).error?.code ?? 'ok';
      ahead += 1_000;
      expect(await call(two)).toBe('ok');
      for (let round = 0; round < 5; round++) {
        const source = 'forbid(principal, action == Action::"a2a_invoke", resource);';
        const { id } = (await one.call('POST', '/api/policies', { name: 'stop', text: source })).body;
        expect(await call(one)).toBe(-32003);
        ahead += 1_000;
        expect(await call(two)).toBe(-32003);
        await two.call('DELETE', `/api/policies/${id}`);
        expect(await call(two)).toBe('ok');
        ahead += 1_000;
        expect(await call(one)).toBe('ok');
      }
    } finally {
      await two.close();
      await one.close();
      await agent.close();
    }
  });
});

describe('rialto/client', () => {
  it('AN-99 callAgent signs with the secret, `sub` is the email, and the doors accept the token', async () => {
    const agent = await startStubAgent({ behaviour: text('hello') });
    const gateway = await startTestGateway();
    try {
      const who = { userEmail: 'ada@acme.example', orgDomain: 'acme' };
      await gateway.tokenOf('acme', who.userEmail);
      expect(await callAgent(agent.url, 'hi', { ...who, secret: testSecret, allow: '127.0.0.1' })).toBe('hello');
      const [scheme, token] = agent.requests[0]!.headers.authorization!.split(' ') as [string, string];
      expect(scheme).toBe('Bearer');
      const { payload } = await jwtVerify(token, Buffer.from(testSecret), { algorithms: ['HS256'] });
      expect(payload).toMatchObject({ sub: who.userEmail, org_domain: 'acme', iss: 'rialto', aud: 'rialto' });
      expect(payload.exp! - payload.iat!).toBe(900);
      expect((await gateway.call('POST', '/mcp', ping, token)).status).toBe(200);
    } finally {
      await gateway.close();
      await agent.close();
    }
  });
});

describe('an agent as caller', () => {
  it('RE-75 a key that is bound to an agent is that agent, and policies read its trust level', async () => {
    const gateway = await startTestGateway();
    const [caller, called] = [await startStubAgent({ name: 'Caller' }), await startStubAgent({ name: 'Called' })];
    try {
      for (const agent of [caller, called]) await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
      const { key: bound } = (await gateway.call('POST', '/api/keys', { name: 'c', agent: 'caller' })).body;
      const source =
        'forbid(principal is A2AAgent, action == Action::"a2a_invoke", resource) ' +
        'unless { principal has trustLevel && principal.trustLevel == "trusted" };';
      expect((await gateway.call('POST', '/api/policies', { name: 'trusted callers', text: source })).status).toBe(201);
      const call = async () =>
        (await gateway.rpc('tools/call', { name: 'called.work', arguments: {} }, bound)).error?.code;
      expect(await call()).toBe(-32003);
      await gateway.call('PATCH', '/api/a2a/agents/caller', { trustLevel: 'trusted' });
      expect(await call()).toBeUndefined();
      const [event] = (await gateway.call('GET', '/api/audit/events?type=a2a_invoke&limit=1')).body.items;
      expect(event.principal).toMatchObject({ kind: 'agent', id: 'caller' });
    } finally {
      await gateway.close();
      await Promise.all([caller.close(), called.close()]);
    }
  });
});
