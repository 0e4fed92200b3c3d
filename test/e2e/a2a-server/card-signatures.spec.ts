import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client';
import { flattenedVerify, importJWK, type JWK } from 'jose';
import { canonicalJson } from '../../../src/kernel/canonical-json.js';
import { SigningKeys } from '../../../src/platform/secrets/signing-keys.js';
import { startTestGateway, type Answer, type TestGateway } from '../../support/gateway/gateway.js';

const wellKnown = '/.well-known/agent-card.json';

describe('signatures of cards', () => {
  let gateway: TestGateway;

  const get = (path: string, headers: Record<string, string> = {}, token: string | null = null): Promise<Answer> =>
    gateway.call('GET', path, undefined, token, headers);

  beforeAll(async () => {
    gateway = await startTestGateway();
    const globex = await gateway.tokenOf('globex', 'gina', 'admin');
    const publish = (body: object, token?: string) => {
      const all = {
        description: 'Answers.',
        executor: { kind: 'echo' },
        a2a_enabled: true,
        publishToCard: true,
        ...body,
      };
      return gateway.call('POST', '/api/a2a/published', all, token);
    };
    await publish({ name: 'kofi', skills: [{ id: 'chat' }, { id: 'hidden', public: false }] });
    await publish({ name: 'older', protocolVersions: ['0.3'] });
    await publish({ name: 'kofi' }, globex);
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'kofi' });
  });

  afterAll(() => gateway.close());

  const keyOf = async (kid: string, jku?: string): Promise<JWK> => {
    expect(jku).toBe(`${gateway.url}/.well-known/jwks.json`);
    const { keys } = (await (await fetch(jku!)).json()) as { keys: JWK[] };
    const key = keys.find((one) => one.kid === kid);
    if (!key) throw new Error('unknown key');
    return key;
  };
  const verify = verifyAgentCardSignature(keyOf);
  let quiet: jest.SpyInstance;

  beforeAll(() => void (quiet = jest.spyOn(console, 'debug').mockImplementation(() => undefined)));
  afterAll(() => quiet.mockRestore());

  it('C14 of every card are accepted by the official verifier, as sent and as the resolver reads it', async () => {
    for (const headers of [{}, { 'a2a-version': '1.0' }] as Record<string, string>[])
      for (const path of [wellKnown, `${wellKnown}?org=default`, '/a2a/kofi@globex/agent.json']) {
        const { body } = await get(path, headers);
        await verify(body);
        await verify(AgentCard.fromJSON(body));
      }
    await verify(await new DefaultAgentCardResolver().resolve(gateway.url));
    await verify((await get(wellKnown, {}, gateway.token)).body);
  });

  it('C14 cover all members of a 1.0 card, also its security', async () => {
    const { body } = await get(wellKnown, { 'a2a-version': '1.0' });
    const lies: object[] = [
      { name: 'mallory' },
      { supportedInterfaces: [{ ...body.supportedInterfaces[0], url: 'https://evil.example' }] },
      { securitySchemes: { jwtBearer: { httpAuthSecurityScheme: { scheme: 'basic' } } } },
      { skills: [...body.skills, { id: 'x', name: 'x', description: 'x', tags: ['x'] }] },
      { capabilities: { ...body.capabilities, streaming: false } },
    ];
    for (const lie of lies) await expect(verify({ ...body, ...lie })).rejects.toThrow(/No valid signatures/);
  });

  it('C14 of a card of 0.3 cover its own canonical form', async () => {
    const { signatures, ...card } = (await get(`/a2a/agents/older${wellKnown}`)).body;
    expect(signatures).toHaveLength(1);
    const header = JSON.parse(Buffer.from(signatures[0].protected, 'base64url').toString()) as Record<string, string>;
    expect(header).toMatchObject({ alg: 'EdDSA', typ: 'JOSE' });
    const key = await importJWK(await keyOf(header.kid!, header.jku), 'EdDSA');
    const payload = Buffer.from(canonicalJson(card)).toString('base64url');
    await flattenedVerify({ ...signatures[0], payload }, key);
    const forged = Buffer.from(canonicalJson({ ...card, name: 'x' })).toString('base64url');
    await expect(flattenedVerify({ ...signatures[0], payload: forged }, key)).rejects.toThrow();
  });

  it('use keys that anyone may read, without their private halves, and do not change', async () => {
    const { body, headers } = await get('/.well-known/jwks.json');
    expect(body.keys).toEqual([
      { kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: expect.any(String), alg: 'EdDSA', use: 'sig' },
    ]);
    expect(headers.get('cache-control')).toBe('public, max-age=300, stale-while-revalidate=3600');
    expect((await get('/.well-known/jwks.json', { 'if-none-match': headers.get('etag')! })).status).toBe(304);
  });

  it('continue through a rotation: cards are re-signed at once; old ones verify until their key retires', async () => {
    const keys = gateway.gateway.get(SigningKeys);
    const before = (await get(wellKnown)).body;
    const kid = await keys.rotateKey(3_600);
    const after = (await get(wellKnown)).body;
    const header = (card: any) => JSON.parse(Buffer.from(card.signatures[0].protected, 'base64url').toString());
    expect(header(after).kid).toBe(kid);
    expect(header(before).kid).not.toBe(kid);
    await Promise.all([verify(before), verify(after)]);
    expect((await get('/.well-known/jwks.json')).body.keys.map((key: JWK) => key.kid)).toEqual([
      kid,
      header(before).kid,
    ]);
    await keys.rotateKey(0);
    await expect(verify(after)).rejects.toThrow();
    await verify((await get(wellKnown)).body);
  });
});
