import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';
import { createHmac } from 'node:crypto';

describe('protection against a hostile caller', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_ADMIN_PASSWORD: 'a-password-of-the-operator' });
    agent = await startStubAgent({
      card: 'v03',
      name: 'Target',
      skills: [{ id: 'work' }],
      behaviour: data({ done: true }),
    });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
  });
  afterAll(async () => {
    await agent.close();
    await gateway.close();
  });

  const recorded = async (outcome: string): Promise<number> =>
    (
      await gateway.sql(`select from audit_events where event->>'verb' = 'target.work' and event->>'outcome' = $1`, [
        outcome,
      ])
    ).length;

  it('shows the operators’ pages only to admins of the default org', async () => {
    const board = (token: string | null) => gateway.call('GET', '/admin/queues/', undefined, token);
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    expect((await board(null)).status).toBe(401);
    expect((await board(gina)).status).toBe(403);
    expect((await board(gateway.token)).status).toBe(200);
  });

  it('RE-41 a call with arguments that no database can store is still recorded', async () => {
    const params = `{"name":"target.work","arguments":{"x":"\\ud800","y":"\\u0000"}}`;
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    const answer = await gateway.call('POST', '/mcp', body);
    expect(answer.body.result.structuredContent).toEqual({ done: true });
    expect(await recorded('completed')).toBe(1);
    await gateway.call('POST', '/api/policies', {
      name: 'no-target',
      text: 'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"target.work");',
    });
    expect((await gateway.call('POST', '/mcp', body)).body.error.code).toBe(-32003);
    expect(await recorded('denied')).toBe(1);
  });

  it.each(['/docs', '/admin/queues/'])('%s runs only its own scripts, and no page can frame it', async (path) => {
    const Authorization = `Basic ${Buffer.from('admin:a-password-of-the-operator').toString('base64')}`;
    const { headers } = await fetch(`${gateway.url}${path}`, { headers: { Authorization } });
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'self';.*frame-ancestors 'none'$/);
    expect(headers.get('content-security-policy')).not.toMatch(/script-src|unsafe-eval/);
  });

  it.each(['org_domain', 'sub', 'jti'])(
    'abuse 1 a token with a NUL in %s is refused like any other invalid token',
    async (claim) => {
      const now = Math.floor(Date.now() / 1_000);
      const claims = {
        iss: 'rialto',
        aud: 'rialto',
        sub: 'bob',
        org_domain: 'default',
        iat: now,
        exp: now + 600,
        [claim]: 'a\u0000b',
      };
      const parts = [{ alg: 'HS256' }, claims]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.');
      const token = `${parts}.${createHmac('sha256', testSecret).update(parts).digest('base64url')}`;
      for (const path of ['/api/keys', '/admin/queues/'])
        expect((await gateway.call('GET', path, undefined, token)).status).toBe(401);
    },
  );

  it.each([
    '/mcp',
    '/mcp/servers/x',
    '/a2a/agents/x',
    '/a2a',
    '/_agent-native/a2a',
    '/a2a/agents/x/message:send',
    '/a2e',
  ])('(C22) pages of allowed origins may call %s, other pages may not', async (path) => {
    const asks = 'authorization,content-type,mcp-protocol-version,mcp-session-id,a2a-version';
    const preflight = (origin: string) =>
      fetch(`${gateway.url}${path}`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': asks },
      });
    const allowed = await preflight('http://localhost:6274');
    expect([allowed.status, allowed.headers.get('access-control-allow-origin')]).toEqual([
      204,
      'http://localhost:6274',
    ]);
    expect(allowed.headers.get('access-control-allow-methods')).toContain('POST');
    expect(allowed.headers.get('access-control-allow-headers')).toBe(asks);
    expect(allowed.headers.get('access-control-allow-credentials')).toBeNull();
    const refused = await preflight('http://evil.example');
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    const answer = await fetch(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { origin: 'http://localhost:6274', 'content-type': 'application/json' },
      body: '{}',
    });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('access-control-allow-origin')).toBe('http://localhost:6274');
    expect(answer.headers.get('vary')).toContain('Origin');
    for (const name of ['Mcp-Session-Id', 'WWW-Authenticate', 'A2A-Version'])
      expect(answer.headers.get('access-control-expose-headers')).toContain(name);
  });

  it('the body of an unauthenticated request is not read', async () => {
    const answers = ['{ broken', JSON.stringify({ name: 'x'.repeat(3_000_000) })].map(async (body) => {
      const refused = await gateway.call('POST', '/api/policies', body, null);
      return [refused.status, refused.body.code];
    });
    for (const answer of answers) expect(await answer).toEqual([401, 'unauthenticated']);
    expect((await gateway.call('POST', '/api/policies', '{ broken')).status).toBe(400);
  });

  it('a browser is asked for a password at the queues, and may use that of the operator or an admin key', async () => {
    const as = (password: string) => ({
      authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`,
    });
    const asked = await gateway.call('GET', '/admin/queues/', undefined, null);
    expect([asked.status, asked.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="rialto", Bearer realm="rialto"',
    ]);
    expect(
      (await gateway.call('GET', '/admin/queues/', undefined, null, as('a-password-of-the-operator'))).status,
    ).toBe(200);
    expect((await gateway.call('GET', '/admin/queues/', undefined, null, as(gateway.token))).status).toBe(200);
    expect((await gateway.call('GET', '/admin/queues/', undefined, null, as('wrong'))).status).toBe(401);
  });

  it('a client that guesses the operator’s password must wait, even with the right one; keys still work', async () => {
    const status = async (password: string) =>
      await gateway.call('GET', '/admin/queues/', undefined, null, {
        authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`,
      });
    const guesses: number[] = [];
    for (let guess = 0; guess < 12; guess++) guesses.push((await status(`guess-${guess}`)).status);
    expect(guesses.slice(-2)).toEqual([429, 429]);
    const right = await status('a-password-of-the-operator');
    expect([right.status, Number(right.headers.get('retry-after')) > 0]).toEqual([429, true]);
    expect((await status(gateway.token)).status).toBe(200);
    expect((await gateway.call('GET', '/admin/queues/')).status).toBe(200);
  });

  it('a change of a queue on the board is audited with its author, and a read is not', async () => {
    const queue = (await gateway.call('GET', '/admin/queues/api/queues')).body.queues[0].name as string;
    expect((await gateway.call('PUT', `/admin/queues/api/queues/${queue}/pause?secret=1`)).status).toBe(200);
    expect((await gateway.call('PUT', `/admin/queues/api/queues/${queue}/resume`)).status).toBe(200);
    const { items } = (await gateway.call('GET', '/api/audit/events?type=operator.act')).body;
    expect(items.map(({ by, method, path }: any) => [by, method, path]).reverse()).toEqual([
      ['admin', 'PUT', `/admin/queues/api/queues/${queue}/pause`],
      ['admin', 'PUT', `/admin/queues/api/queues/${queue}/resume`],
    ]);
  });
});

describe('S3 the pages of the operator, behind a proxy', () => {
  const password = 'a-password-of-the-operator';
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_ADMIN_PASSWORD: password, RIALTO_TRUST_PROXY: '127.0.0.1' });
  });
  afterAll(() => gateway.close());

  const ask = async (method: string, path: string, word: string, headers: Record<string, string>): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`admin:${word}`).toString('base64')}`;
    return (await gateway.call(method, path, undefined, null, { ...headers, authorization })).status;
  };

  it.each([
    [{ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'http://localhost:1' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{}, 200],
  ])('accept no act of another site with the password that a browser remembers: %j', async (headers, status) => {
    const queue = (await gateway.call('GET', '/admin/queues/api/queues')).body.queues[0].name as string;
    const act = (what: string) => ask('PUT', `/admin/queues/api/queues/${queue}/${what}`, password, headers);
    expect([await act('pause'), await act('resume')]).toEqual([status, status]);
  });

  it('lock out only the address that guesses', async () => {
    const openBoard = (word: string, from: string) => ask('GET', '/admin/queues/', word, { 'x-forwarded-for': from });
    for (let guess = 0; guess < 11; guess++) await openBoard(`guess-${guess}`, '203.0.113.9');
    expect([await openBoard(password, '203.0.113.9'), await openBoard(password, '203.0.113.10')]).toEqual([429, 200]);
  });
});
