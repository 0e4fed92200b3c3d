import { createHmac, generateKeyPairSync } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWTPayload } from 'jose';
import { startTestGateway, signToken, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { closeAll, http } from '../../support/clients/outbound.js';
import { sendBytes } from '../../support/clients/raw-socket.js';
import { Pg } from '../../../src/platform/database/pg.js';

const part = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
let now: number;
let claims: JWTPayload & { exp: number };
beforeEach(() => {
  now = Math.floor(Date.now() / 1_000);
  claims = { iss: 'rialto', aud: 'rialto', sub: 'bob', org_domain: 'default', iat: now, exp: now + 900 };
});

/** Builds a token with any header and payload text, and a correct HMAC under the secret. */
function forge(header: object, payload: object | string, secret = testSecret, hash = 'sha256'): string {
  const signed = `${part(header)}.${part(payload)}`;
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`;
}

/** Sends a GET with header lines that no client library would write. */
async function rawGet(url: string, lines: readonly string[]) {
  const { port, host } = new URL(url);
  const head = ['GET /api/orgs HTTP/1.1', `Host: ${host}`, 'Connection: close', ...lines].join('\r\n');
  return (await sendBytes(Number(port), Buffer.from(`${head}\r\n\r\n`), { hangMs: 5_000 })).answer!;
}

describe('the identity of a caller', () => {
  let gateway: TestGateway;
  let jku: Awaited<ReturnType<typeof http>>;
  let fetched = 0;

  beforeAll(async () => {
    jku = await http((_request, response) => {
      fetched++;
      response.end('{"keys":[]}');
    });
    gateway = await startTestGateway({ RIALTO_API_KEY_ENV: 'LEGACY', LEGACY: 'a-static-legacy-bearer' });
    await gateway.tokenOf('default', 'bob');
    await gateway.tokenOf('globex', 'gina', 'admin');
  });

  afterAll(async () => {
    await gateway.close();
    await closeAll();
  });

  /** Returns the status of both doors, which must be equal. */
  async function statusOf(token: string | null, headers: Record<string, string> = {}): Promise<number> {
    const api = await gateway.call('GET', '/api/orgs', undefined, token, headers);
    const body = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const mcp = await gateway.call('POST', '/mcp', body, token, headers);
    expect(mcp.status).toBe(api.status);
    return api.status;
  }

  it('AN-40 AN-48 accepts a member with a token under the global secret', async () => {
    expect(await statusOf(await signToken())).toBe(200);
  });

  it('AN-49 abuse 1: missing or malformed credentials get one answer, without a database query', async () => {
    const cases: (string | string[] | undefined)[] = [
      undefined,
      'Bearer',
      'Bearer ',
      'Basic Ym9iOmJvYg==',
      `Bearer ${'x'.repeat(9_000)}`,
      'Bearer a b',
      ['Bearer a', 'Bearer b'],
      'Bearer ä',
      `Bearer ${'.'.repeat(5)}`,
      'bearer\tx',
      `Bearer${' '.repeat(7_000)}`,
    ];
    const asked = jest.spyOn(gateway.gateway.get(Pg), 'rows');
    const bodies = new Set<string>();
    for (const authorization of cases) {
      const lines = [authorization].flat().flatMap((value) => (value === undefined ? [] : [`Authorization: ${value}`]));
      const { status, headers, body } = await rawGet(gateway.url, lines);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toMatch(/^Bearer/);
      bodies.add(JSON.stringify({ ...(JSON.parse(body) as object), requestId: '' }));
    }
    expect(bodies.size).toBe(1);
    expect([...bodies][0]).toContain('Authentication required');
    const identity = ['org-keys', 'member', 'key-bearer', 'org-by-slug'];
    expect(asked.mock.calls.filter(([name]) => identity.includes(name))).toEqual([]);
    asked.mockRestore();
  });

  it('abuse 10: a header of 16,000 spaces is refused quickly', async () => {
    const { status } = await rawGet(gateway.url, [`Authorization: Bearer${' '.repeat(15_000)}x`]);
    expect([401, 431]).toContain(status);
  });

  it('AN-50 abuse 2: pins the algorithm, ignores keys in a header, and fetches no jku', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    const jwk = publicKey.export({ format: 'jwk' });
    const rs256 = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(privateKey);
    const own = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', jwk: jwk }).sign(privateKey);
    const tokens = [
      `${part({ alg: 'none' })}.${part(claims)}.`,
      `${part({ alg: 'None' })}.${part(claims)}.AA`,
      `${part({ alg: 'none' })}.${part(claims)}.${part('x')}`,
      forge({ alg: 'HS384' }, claims, testSecret, 'sha384'),
      forge({ alg: 'HS512' }, claims, testSecret, 'sha512'),
      forge({ alg: 'RS256' }, claims),
      forge({ alg: 'HS256' }, claims, pem),
      forge({ alg: 'HS256', crit: ['x'], x: 1 }, claims),
      forge({ alg: 'HS256', jwk: { kty: 'oct', k: part('k') } }, claims, 'k'),
      forge({ alg: 'HS256', jku: `${jku.url}/keys` }, claims, 'other'),
      forge({ alg: 'HS256', x5u: `${jku.url}/chain` }, claims, 'other'),
      forge({}, claims),
      rs256,
      own,
    ];
    for (const token of tokens) expect(await statusOf(token)).toBe(401);
    expect(fetched).toBe(0);
  });

  it.each([
    ['no exp', { exp: undefined }],
    ['no iat', { iat: undefined }],
    ['no aud', { aud: undefined }],
    ['no iss', { iss: undefined }],
    ['no sub', { sub: undefined }],
    ['no org_domain', { org_domain: undefined }],
    ['exp in a hundred years', () => ({ exp: now + 3_153_600_000 })],
    ['exp over an hour', () => ({ exp: now + 3_700 })],
    ['exp as text', () => ({ exp: String(now + 900) })],
    ['exp in the past', () => ({ iat: now - 900, exp: now - 120 })],
    ['iat in the future', () => ({ iat: now + 600, exp: now + 900 })],
    ['nbf in the future', () => ({ nbf: now + 600 })],
    ['another aud', { aud: 'other' }],
    ['another aud first', { aud: ['other', 'rialto'] }],
    ['an empty aud', { aud: [] }],
    ['another iss', { iss: 'other' }],
    ['an empty sub', { sub: '' }],
    ['a sub that is not a text', { sub: 7 }],
    ['an unknown sub', { sub: 'nobody' }],
    ['an unknown org', { org_domain: 'nowhere' }],
    ['an org that is not a text', { org_domain: ['default'] }],
  ])('AN-48 abuse 3: %s is refused', async (_what, change) => {
    expect(await statusOf(await signToken(typeof change === 'function' ? change() : change))).toBe(401);
  });

  it('abuse 3: overflowing numbers are refused, and a minute of skew is not', async () => {
    const infinite = JSON.stringify(claims).replace(`"exp":${claims.exp}`, '"exp":1e400');
    expect(await statusOf(forge({ alg: 'HS256' }, infinite))).toBe(401);
    expect(await statusOf(await signToken({ iat: now - 900, exp: now - 20 }))).toBe(200);
    expect(await statusOf(await signToken({ aud: ['rialto'] }))).toBe(200);
  });

  it('abuse 4: an org secret works for its own org only, and its use for another is audited', async () => {
    const rotate = async (org: string) =>
      (await gateway.call('POST', `/api/orgs/${org}/secret`, { graceSeconds: 0 })).body.secret as string;
    const secret = await rotate('globex');
    const own = { sub: 'gina', org_domain: 'globex' };
    expect(await statusOf(await signToken(own, secret))).toBe(200);
    const { id } = (await gateway.call('GET', '/api/orgs/default')).body;
    expect(await statusOf(await signToken({ ...own, org_id: id }, secret))).toBe(401);
    expect(await statusOf(await signToken({ ...own, org_domain: 'default', sub: 'bob' }, secret))).toBe(401);
    expect(await statusOf(await signToken({ ...own, sub: 'bob' }, secret))).toBe(401);
    const twice = JSON.stringify({ ...claims, ...own, org_id: 'globex' }).replace('{', `{"org_id":"${id}",`);
    expect(await statusOf(forge({ alg: 'HS256' }, twice, secret))).toBe(401);
    const gina = await signToken(own);
    const { items } = (await gateway.call('GET', '/api/audit/events?type=token.tenant_mismatch', undefined, gina)).body;
    expect(items.map(({ sub }: any) => sub).sort()).toEqual(['bob', 'gina']);
    expect(items[0]).toMatchObject({ outcome: 'denied', tokenHash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const elsewhere = (await gateway.call('GET', '/api/audit/events?type=token.tenant_mismatch')).body.items;
    expect(JSON.stringify(elsewhere)).not.toContain('gina');
    expect((await gateway.call('POST', '/api/audit/verify', undefined, gina)).body).toMatchObject({ valid: true });
  });

  it('abuse 4: endless forged tokens do not fill the audit of an org', async () => {
    const secret = (await gateway.call('POST', '/api/orgs/globex/secret', { graceSeconds: 0 })).body.secret as string;
    const noted = async () =>
      (await gateway.sql(`select from audit_events where type = 'token.tenant_mismatch'`)).length;
    const before = await noted();
    for (let nth = 0; nth < 20; nth++)
      expect(await statusOf(await signToken({ sub: `nobody-${nth}`, org_domain: 'globex' }, secret))).toBe(401);
    expect((await noted()) - before).toBeGreaterThan(0);
    expect(await noted()).toBeLessThanOrEqual(12);
  });

  it('abuse 7: a token has one spelling, so a revoked one cannot be used in another', async () => {
    const token = await signToken({ jti: 'one-use' });
    const [head, body, mac] = token.split('.') as [string, string, string];
    const last = mac.slice(0, -1) + String.fromCharCode(mac.charCodeAt(mac.length - 1) + 1);
    const spellings = [`${token}=`, `${head}.${body}=.${mac}`, `${head}.${body}.${last}`, `${token}.`];
    for (const spelling of spellings) expect(await statusOf(spelling)).toBe(401);
    expect(await statusOf(token)).toBe(200);
    expect((await gateway.call('POST', '/api/tokens/revocations', { jti: 'one-use' })).status).toBe(204);
    for (const spelling of [token, ...spellings]) expect(await statusOf(spelling)).toBe(401);
    expect(await statusOf(await signToken({ jti: 'another' }))).toBe(200);
  });

  it('abuse 8: an unknown org gets the same answer as a known one', async () => {
    const answers = [];
    for (const org_domain of ['default', 'nowhere']) {
      const token = await signToken({ org_domain }, 'a-secret-of-nobody-at-all-really-not');
      answers.push(await gateway.call('GET', '/api/orgs', undefined, token, { 'x-request-id': 'same' }));
    }
    expect(answers[0]!.body).toEqual(answers[1]!.body);
    expect(answers[0]!.status).toBe(401);
  });

  it('AN-41 the legacy static bearer works next to tokens', async () => {
    expect(await statusOf('a-static-legacy-bearer')).toBe(200);
    expect(await statusOf('a-static-legacy-bearex')).toBe(401);
    expect((await gateway.call('POST', '/api/keys', { name: 'x' }, 'a-static-legacy-bearer')).status).toBe(403);
  });

  it('API keys have a role, an expiry and a revocation, and are shown once', async () => {
    const make = async (body: object) => (await gateway.call('POST', '/api/keys', body)).body;
    const viewer = await make({ name: 'look', role: 'viewer' });
    expect(viewer.key).toMatch(/^rlt_[\w-]{40,}$/);
    expect(await statusOf(viewer.key)).toBe(200);
    expect((await gateway.call('POST', '/api/keys', { name: 'x' }, viewer.key)).status).toBe(403);
    expect(await statusOf(`${viewer.key}x`)).toBe(401);
    const listed = (await gateway.call('GET', '/api/keys')).body;
    expect(JSON.stringify(listed)).not.toContain(viewer.key);
    expect(await statusOf((await make({ name: 'late', expiresAt: '2020-01-01T00:00:00Z' })).key)).toBe(401);
    expect((await gateway.call('DELETE', `/api/keys/${viewer.id}`)).status).toBe(204);
    expect(await statusOf(viewer.key)).toBe(401);
    const gina = await signToken({ sub: 'gina', org_domain: 'globex' });
    const [other] = listed.items;
    expect((await gateway.call('DELETE', `/api/keys/${other.id}`, undefined, gina)).status).toBe(404);
  });

  it('abuse 6: a member who was removed, suspended or demoted, and an org that was deleted', async () => {
    const token = await gateway.tokenOf('default', 'carl', 'admin');
    expect((await gateway.call('POST', '/api/keys', { name: 'by carl' }, token)).status).toBe(201);
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'carl', role: 'viewer' });
    expect((await gateway.call('POST', '/api/keys', { name: 'by carl' }, token)).status).toBe(403);
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'carl', role: 'viewer', active: false });
    expect(await statusOf(token)).toBe(401);
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'carl', role: 'viewer' });
    expect(await statusOf(token)).toBe(200);
    await gateway.call('DELETE', '/api/orgs/default/members/carl');
    expect(await statusOf(token)).toBe(401);
    const doomed = await gateway.tokenOf('doomed', 'dora', 'admin');
    const { key } = (await gateway.call('POST', '/api/keys', { name: 'k' }, doomed)).body;
    expect([await statusOf(doomed), await statusOf(key)]).toEqual([200, 200]);
    expect((await gateway.call('DELETE', '/api/orgs/doomed')).status).toBe(204);
    expect([await statusOf(doomed), await statusOf(key)]).toEqual([401, 401]);
  });
});

describe('an external identity provider', () => {
  let gateway: TestGateway;
  let privateKey: CryptoKey;
  let publicPem: string;
  let outage: 'status' | 'silence' | undefined;

  beforeAll(async () => {
    const pair = await generateKeyPair('RS256', { extractable: true });
    privateKey = pair.privateKey;
    const jwk = { ...(await exportJWK(pair.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
    publicPem = JSON.stringify(jwk);
    const provider = await http((_request, response) => {
      if (outage === 'silence') return void response.destroy();
      if (outage === 'status') response.statusCode = 502;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ keys: [jwk] }));
    });
    gateway = await startTestGateway({ RIALTO_JWKS: `default=https://idp.example|${provider.url}/jwks.json` });
    await gateway.tokenOf('default', 'bob');
    await gateway.tokenOf('globex', 'gina', 'admin');
  });

  afterAll(async () => {
    await gateway.close();
    await closeAll();
  });

  const outside = (change: object = {}, header: object = {}): Promise<string> =>
    new SignJWT({ ...claims, iss: 'https://idp.example', org_domain: undefined, ...change })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1', ...header })
      .sign(privateKey);
  const statusOf = async (token: string) => (await gateway.call('GET', '/api/orgs', undefined, token)).status;

  it('answers 503 while its keys cannot be read, because the token may be right', async () => {
    for (const kind of ['status', 'silence'] as const) {
      outage = kind;
      expect(await statusOf(await outside())).toBe(503);
      const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
      expect((await gateway.call('POST', '/mcp', ping, await outside())).status).toBe(503);
    }
    outage = undefined;
    expect(await statusOf(await outside())).toBe(200);
  });

  it('accepts its members by its own keys, in its own org only', async () => {
    expect(await statusOf(await outside())).toBe(200);
    expect(await statusOf(await outside({ org_domain: 'default' }))).toBe(200);
    expect(await statusOf(await outside({ org_domain: 'globex', sub: 'gina' }))).toBe(401);
    expect(await statusOf(await outside({ sub: 'gina' }))).toBe(401);
    expect(await statusOf(await outside({ aud: 'other' }))).toBe(401);
    expect(await statusOf(await outside({ exp: now + 86_400 }))).toBe(401);
    expect(await statusOf(await outside({}, { kid: 'k2' }))).toBe(401);
  });

  it('an MCP client without a token learns of it, and a token for the MCP door works', async () => {
    const door = `${gateway.url}/mcp`;
    const call = (path: string, init?: RequestInit) => fetch(`${gateway.url}${path}`, init);
    for (const path of ['/mcp', '/mcp/servers/files']) {
      const refused = await call(path, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
      const where = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1];
      expect([refused.status, where]).toEqual([401, `${gateway.url}/.well-known/oauth-protected-resource${path}`]);
      const document = await fetch(where!);
      expect(await document.json()).toEqual({
        resource: door,
        authorization_servers: ['https://idp.example'],
        bearer_methods_supported: ['header'],
        resource_name: 'Rialto',
      });
      expect(document.headers.get('access-control-allow-origin')).toBe('*');
    }
    expect((await call('/.well-known/oauth-protected-resource')).status).toBe(200);
    expect((await call('/.well-known/oauth-protected-resource/api')).status).toBe(404);
    expect(await statusOf(await outside({ aud: door }))).toBe(200);
    expect(await statusOf(await outside({ aud: [door, 'other'] }))).toBe(401);
    expect(await statusOf(await outside({ aud: `${door}/other` }))).toBe(401);
  });

  it("AN-50 its issuer cannot be claimed under the gateway's secret, and its public key is not a secret", async () => {
    const payload = { ...claims, iss: 'https://idp.example' };
    expect(await statusOf(forge({ alg: 'HS256', kid: 'k1' }, payload))).toBe(401);
    expect(await statusOf(forge({ alg: 'HS256', kid: 'k1' }, payload, publicPem))).toBe(401);
    expect(await statusOf(await outside({ iss: 'rialto' }))).toBe(401);
    expect(await statusOf(await signToken())).toBe(200);
  });
});
