import { publish, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, signToken, type TestGateway } from '../../support/gateway/gateway.js';

/*
 * Callers of agent-native share `A2A_SECRET` with the gateway. They name their workspace by its mail domain, by an id
 * of their own system, or not at all.
 */
describe('(N7) tokens of another system', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_LEGACY_TOKENS: 'true' });
    await gateway.tokenOf('acme', 'alice');
    await gateway.tokenOf('globex', 'gina', 'admin');
    await gateway.tokenOf('default', 'bob');
    for (const [org, admin] of [
      ['acme', 'ann'],
      ['default', 'root'],
    ] as const) {
      const token = await gateway.tokenOf(org, admin, 'admin');
      await publish(gateway, {}, token);
      await gateway.call('PATCH', `/api/orgs/${org}`, { defaultAgent: 'echo' }, token);
    }
    expect(await setDomains('acme', ['ACME.example', 'mail.acme.example'])).toMatchObject({
      status: 200,
      body: { domains: ['acme.example', 'mail.acme.example'] },
    });
  });
  afterAll(() => gateway.close());

  const setDomains = (org: string, domains: string[], token?: string) =>
    gateway.call('PUT', `/api/orgs/${org}/domains`, { domains }, token);
  /** Signs a token as the reference does: without issuer and audience. */
  const minted = (claims: object) => signToken({ iss: undefined, aud: undefined, org_domain: undefined, ...claims });
  const send = async (token: string) =>
    (await rpcCall(gateway, 'SendMessage', { message: userMessage('hello') }, { agent: '/_agent-native/a2a', token }))
      .status;

  it.each<[string, object, number]>([
    ['names no org and is a member of the default org', { sub: 'bob' }, 200],
    ['names no org, and is not a member of the default org', { sub: 'alice' }, 401],
    ['names the domain of an org', { sub: 'alice', org_domain: 'acme.example' }, 200],
    ['names another domain of the org', { sub: 'alice', org_domain: 'Mail.Acme.example' }, 200],
    ['names an unknown domain', { sub: 'alice', org_domain: 'evil.example' }, 401],
    ['has an id of its own system', { sub: 'alice', org_domain: 'acme.example', org_id: 'ws_7' }, 200],
    ['has the id of another org of the gateway', { sub: 'alice', org_domain: 'acme', org_id: 'globex' }, 401],
    ['names a user who is not a member', { sub: 'mallory', org_domain: 'acme.example' }, 401],
  ])('one that %s', async (_, claims, status) => {
    expect(await send(await minted(claims))).toBe(status);
  });

  it('in other settings an org is named by its slug or a domain, and an id must be its own', async () => {
    const read = async (claims: Record<string, unknown>) =>
      (await gateway.call('GET', '/api/orgs', undefined, await signToken(claims))).status;
    expect(await read({ sub: 'alice', org_domain: 'acme.example' })).toBe(200);
    expect(await read({ sub: 'bob', org_domain: undefined })).toBe(401);
    expect(await read({ sub: 'alice', org_domain: 'acme.example', org_id: 'ws_7' })).toBe(401);
  });

  it('a domain belongs to one org, as an admin of the deployment sets it, until it is removed', async () => {
    const gina = await signToken({ sub: 'gina', org_domain: 'globex' });
    expect((await setDomains('globex', ['globex.example'], gina)).status).toBe(403);
    expect(await setDomains('globex', ['globex.example', 'acme.example'])).toMatchObject({ status: 409 });
    expect((await gateway.call('GET', '/api/orgs/globex/domains', undefined, gina)).body).toEqual({ domains: [] });
    expect((await gateway.call('GET', '/api/orgs/acme/domains', undefined, gina)).status).toBe(404);
    for (const wrong of [['acme'], ['-a.example'], ['a..example'], ['two.example', 'TWO.example'], ['a.b/c']])
      expect((await setDomains('globex', wrong)).status).toBe(400);
    const alice = await minted({ sub: 'alice', org_domain: 'acme.example' });
    expect(await send(alice)).toBe(200);
    expect((await setDomains('acme', ['mail.acme.example'])).status).toBe(200);
    expect(await send(alice)).toBe(401);
    expect((await setDomains('globex', ['acme.example'])).status).toBe(200);
    expect(await send(alice)).toBe(401);
  });
});
