import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify, SignJWT, generateKeyPair } from 'jose';
import { publish, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('short-lived access tokens', () => {
  let gateway: TestGateway;
  let client: { id: string; key: string };

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway, { handle: 'kofi' });
    client = await newKey({ groups: ['ops'] });
  });
  afterAll(() => gateway.close());

  const newKey = async (more: object = {}) => {
    const { status, body } = await gateway.call('POST', '/api/keys', { name: 'robot', ...more });
    expect(status).toBe(201);
    return body as { id: string; key: string };
  };
  const ask = (form: Record<string, string>, headers: Record<string, string> = {}, at: TestGateway = gateway) =>
    at.call('POST', '/oauth/token', new URLSearchParams(form).toString(), null, {
      'content-type': 'application/x-www-form-urlencoded',
      ...headers,
    });
  const credentials = ({ id, key }: { id: string; key: string }) => ({ client_id: id, client_secret: key });
  const grant = { grant_type: 'client_credentials' };
  const tokenOf = async (one: { id: string; key: string }) =>
    (await ask({ ...grant, ...credentials(one) })).body.access_token as string;
  const listTasks = (token: string, at: TestGateway = gateway) => at.call('GET', '/api/a2a/tasks', undefined, token);
  const sends = async (token: string, at: TestGateway = gateway) =>
    (await rpcCall(at, 'SendMessage', { message: userMessage('x') }, { token })).status;

  it('RI-50 a client exchanges its key for an EdDSA token of 15 minutes, which every door accepts', async () => {
    const metadata = (await gateway.call('GET', '/.well-known/oauth-authorization-server', undefined, null)).body;
    expect(metadata).toMatchObject({
      token_endpoint: `${gateway.url}/oauth/token`,
      grant_types_supported: ['client_credentials'],
    });
    const answer = await ask({ ...grant, ...credentials(client) });
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(answer.body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 900 });
    const token = answer.body.access_token as string;
    const { payload, protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(metadata.jwks_uri)), {
      algorithms: ['EdDSA'],
      issuer: 'rialto',
      audience: 'rialto',
    });
    expect(protectedHeader).toMatchObject({ alg: 'EdDSA', typ: 'at+jwt' });
    expect(payload.exp! - payload.iat!).toBe(900);
    expect(payload).toMatchObject({ sub: client.id, org_domain: 'default', jti: expect.any(String) });
    const basic = Buffer.from(`${client.id}:${client.key}`).toString('base64');
    expect((await ask(grant, { authorization: `Basic ${basic}` })).status).toBe(200);
    expect([await sends(token), (await listTasks(token)).status]).toEqual([200, 200]);
    expect((await gateway.rpc('tools/list', {}, token)).result.tools.length).toBeGreaterThan(0);
    const [task] = await gateway.sql('select owner from a2a_tasks order by created_at desc limit 1');
    expect(task.owner).toBe('service:robot');
    const other = await startTestGateway({}, gateway);
    try {
      expect(await sends(token, other)).toBe(200);
    } finally {
      await other.close();
    }
    expect(gateway.log.join('\n')).not.toContain(token.slice(-40));
  });

  it('RI-50 refuses wrong clients with an OAuth error, and tells nothing about the key', async () => {
    const admin = await newKey({ name: 'other' });
    for (const form of [
      { ...grant, client_id: client.id, client_secret: 'rlt_wrong' },
      { ...grant, client_id: admin.id, client_secret: client.key },
      { ...grant, client_id: client.id },
    ]) {
      const { status, body, headers } = await ask(form);
      expect([status, body.error]).toEqual([401, 'invalid_client']);
      expect(headers.get('www-authenticate')).toBe('Basic realm="rialto"');
    }
    const password = await ask({ grant_type: 'password', ...credentials(client) });
    expect([password.status, password.body.error]).toEqual([400, 'unsupported_grant_type']);
    expect((await ask({ ...grant, ...credentials(client), scope: 'admin' })).body.error).toBe('invalid_scope');
    expect((await ask({ ...grant, client_secret: 'x'.repeat(9_000) })).status).toBe(413);
    expect((await gateway.call('GET', '/oauth/token', undefined, null)).status).toBe(405);
  });

  it('RI-50 a token ends with its key, with its own revocation, and at its time', async () => {
    const soon = new Date(Date.now() + 60_000).toISOString();
    const brief = (await ask({ ...grant, ...credentials(await newKey({ name: 'brief', expiresAt: soon })) })).body;
    expect(brief.expires_in).toBeLessThanOrEqual(60);

    const one = await newKey({ name: 'short' });
    const [first, second] = [await tokenOf(one), await tokenOf(one)];
    const { jti } = JSON.parse(Buffer.from(first.split('.')[1]!, 'base64url').toString());
    expect((await gateway.call('POST', '/api/tokens/revocations', { jti })).status).toBe(204);
    expect([(await listTasks(first)).status, (await listTasks(second)).status]).toEqual([401, 200]);
    await gateway.call('DELETE', `/api/keys/${one.id}`);
    expect((await listTasks(second)).status).toBe(401);
    expect((await ask({ ...grant, ...credentials(one) })).status).toBe(401);

    const old = await tokenOf(client);
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 901_000);
    try {
      expect((await listTasks(old)).status).toBe(401);
    } finally {
      clock.mockRestore();
    }
  });

  it('RI-50 accepts no token that another key signed, no changed one, and no role above that of its key', async () => {
    const token = await tokenOf(client);
    const [, claims = '', signature = ''] = token.split('.');
    const header = decodeProtectedHeader(token);
    const forged = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const { privateKey } = await generateKeyPair('EdDSA');
    const sign = (more: object) =>
      new SignJWT({ ...forged, ...more }).setProtectedHeader(header as { alg: string }).sign(privateKey);
    const edited = Buffer.from(JSON.stringify({ ...forged, exp: forged.exp + 9_000 })).toString('base64url');
    for (const bad of [
      await sign({}),
      `${token.split('.')[0]}.${edited}.${signature}`,
      `${Buffer.from(JSON.stringify({ ...header, kid: 'nobody' })).toString('base64url')}.${claims}.${signature}`,
    ])
      expect((await listTasks(bad)).status).toBe(401);
    expect((await gateway.call('POST', '/api/keys', { name: 'more' }, token)).status).toBe(403);
    const acme = await gateway.tokenOf('acme', 'ann', 'admin');
    const { body } = await gateway.call('POST', '/api/keys', { name: 'theirs' }, acme);
    expect(await sends(await tokenOf(body))).toBe(404); // an agent of another org
  });

  it('RI-50 a handle is found by WebFinger', async () => {
    const host = new URL(gateway.url).host;
    const find = (resource: string, more = '') =>
      gateway.call('GET', `/.well-known/webfinger?resource=${encodeURIComponent(resource)}${more}`, undefined, null);
    const { status, body, headers } = await find(`acct:kofi@${host}`);
    expect([status, headers.get('content-type'), headers.get('access-control-allow-origin')]).toEqual([
      200,
      'application/jrd+json',
      '*',
    ]);
    expect(body.subject).toBe(`acct:kofi@${host}`);
    const [card, door] = body.links as { rel: string; href: string }[];
    const found = (await (await fetch(card!.href)).json()) as { name: string };
    expect(found.name).toBe('echo');
    expect(door!.href).toBe(`${gateway.url}/a2a/agents/echo`);
    expect((await find(`acct:kofi@${host}`, `&rel=${encodeURIComponent(door!.rel)}`)).body.links).toEqual([door]);
    expect((await find(`acct:nobody@${host}`)).status).toBe(404);
    expect((await find('kofi')).status).toBe(400);
    expect((await gateway.call('GET', '/.well-known/webfinger', undefined, null)).status).toBe(400);
  });
});
