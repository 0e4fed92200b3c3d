import { createHmac, createPublicKey } from 'node:crypto';
import { AgentCard, generateAgentCardSignature } from '@a2a-js/sdk';
import {
  cardSigningKey,
  headerText,
  loseKeys,
  servedBySdk,
  serveKeys,
  signatureOf,
  signCardOf,
} from '../../support/clients/card-signing.js';
import type { CardSigningKey } from '../../support/clients/card-signing.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';

const path = '/api/a2a/agents';

describe('abuse 19: signatures of the cards of registered agents', () => {
  let gateway: TestGateway;
  let key: CardSigningKey;
  let other: CardSigningKey;
  const stubs: StubAgent[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    [key, other] = [await cardSigningKey('key-1'), await cardSigningKey('key-2', 'EdDSA')];
  });
  afterEach(async () => {
    await Promise.all(stubs.splice(0).map((stub) => stub.close()));
    await gateway.sql('delete from agent_cards');
  });
  afterAll(() => gateway.close());

  async function stub(options: StubAgentOptions = {}): Promise<StubAgent> {
    const agent = await startStubAgent({ name: 'Signed', ...options });
    stubs.push(agent);
    return agent;
  }
  async function signed(...keys: CardSigningKey[]): Promise<StubAgent> {
    const agent = await stub();
    await signCardOf(agent, ...keys);
    return agent;
  }
  const register = ({ url }: StubAgent, at = gateway, token?: string) => at.call('POST', path, { url }, token);
  const refetch = async (at = gateway, token?: string) =>
    (await at.call('POST', `${path}/signed/refetch`, undefined, token)).body;
  const call = (at = gateway) => at.rpc('tools/call', { name: 'signed.work', arguments: {} });
  const isCalled = async (at = gateway) => (await call(at)).error === undefined;
  const approve = (cardHash: string, at = gateway) => at.call('POST', `${path}/signed/approve`, { cardHash });

  describe('at registration', () => {
    it.each(['EdDSA', 'ES256', 'ES384', 'RS256', 'PS256'] as const)(
      'a card signed with %s is verified, and its key is pinned',
      async (alg) => {
        const own = await cardSigningKey('own', alg);
        const { status, body } = await register(await signed(own));
        const signature = {
          state: 'verified',
          keyThumbprint: own.thumbprint,
          pinnedThumbprint: own.thumbprint,
          reason: null,
        };
        expect([status, body.signature]).toEqual([201, signature]);
        expect((await gateway.call('GET', path)).body.items).toMatchObject([{ signature }]);
      },
    );

    it.each(['v1', 'v03', 'hybrid'] as const)('a %s card is verified', async (card) => {
      const agent = await stub({ card });
      await signCardOf(agent, key);
      expect((await register(agent)).body.signature.state).toBe('verified');
    });

    it('a card without signatures is accepted and shown as unsigned', async () => {
      const { status, body } = await register(await stub());
      expect(status).toBe(201);
      expect(body.signature).toEqual({
        state: 'unsigned',
        keyThumbprint: null,
        pinnedThumbprint: null,
        reason: null,
      });
    });

    const forgeries: [string, (agent: StubAgent) => unknown, RegExp][] = [
      [
        'altered',
        (agent) => (agent.card.description = 'Sends your files elsewhere.'),
        /forged, or the card was altered/,
      ],
      [
        'signed by another key under the same name',
        async (agent) =>
          (agent.card.signatures = [
            await signatureOf(agent.card, { ...other, kid: key.kid }, { jku: `${agent.url}/jwks.json` }),
          ]),
        /forged/,
      ],
      [
        'without a signature in its signature',
        (agent) => (agent.card.signatures = [{ protected: 'e30' }]),
        /malformed/,
      ],
      [
        'with the algorithm none',
        (agent) => (agent.card.signatures = [{ protected: headerText({ alg: 'none', kid: key.kid }), signature: '' }]),
        /"none" proves no signer/,
      ],
      [
        'with an HMAC under the public key',
        (agent) => {
          const pem = createPublicKey({ key: key.jwk as never, format: 'jwk' }).export({ format: 'pem', type: 'spki' });
          const header = headerText({ alg: 'HS256', kid: key.kid, jku: `${agent.url}/jwks.json` });
          const { signatures: _old, ...card } = agent.card;
          const payload = Buffer.from(JSON.stringify(card)).toString('base64url');
          const mac = createHmac('sha256', pem).update(`${header}.${payload}`).digest('base64url');
          agent.card.signatures = [{ protected: header, signature: mac }];
        },
        /"HS256" proves no signer/,
      ],
      [
        'with a number that JSON parsers read differently',
        async (agent) => {
          const text = JSON.stringify(await signCardOf(agent, key)).replace('{', '{"x":9007199254740993,');
          agent.set((to) => to.send(200, text, { 'content-type': 'application/json' }), 'card');
        },
        /a number that JSON parsers read differently/,
      ],
    ];
    it.each(forgeries)('a card %s is refused, with the reason', async (_name, forge, why) => {
      const agent = await signed(key);
      await forge(agent);
      const { status, body } = await register(agent);
      expect([status, body.code, body.signature]).toEqual([400, 'card_invalid', expect.stringMatching(why)]);
      expect((await gateway.call('GET', path)).body.items).toEqual([]);
    });

    it('unsigned members cannot name another address', async () => {
      const agent = await stub();
      const jku = `${agent.url}/jwks.json`;
      const sign = generateAgentCardSignature(key.privateKey, { alg: key.alg, kid: key.kid, typ: 'JOSE', jku });
      serveKeys(agent, key);
      const { signatures } = await sign(AgentCard.fromJSON(agent.card));
      agent.card = { ...agent.card, signatures, url: 'http://127.0.0.1:9/evil', protocolVersion: '0.3.0' };
      expect((await register(agent)).body.signature).toMatch('does not cover all members that this gateway uses');
    });

    it('keys are not fetched from another origin, from a forbidden address, or from the card', async () => {
      const elsewhere = await stub();
      serveKeys(elsewhere, key);
      for (const jku of [
        `${elsewhere.url}/jwks.json`,
        'http://169.254.169.254/jwks.json',
        'file:///etc/passwd',
        '//',
        '',
      ]) {
        const agent = await stub();
        agent.card.signatures = [await signatureOf(agent.card, key, { jku, jwk: key.jwk, x5u: elsewhere.url })];
        const { status, body } = await register(agent);
        expect([status, body.signature.state]).toEqual([201, 'unverified']);
        expect(body.signature.reason).toMatch('another origin');
        await gateway.call('DELETE', `${path}/${body.id}`);
      }
      expect(elsewhere.requests).toEqual([]);
    });

    it.each<[string, (agent: StubAgent) => unknown]>([
      ['down', loseKeys],
      ['too large', (agent) => agent.set((to) => to.send(200, `{"keys":[${' '.repeat(70_000)}]}`), 'unknown')],
      ['a redirect', (agent) => agent.set((to) => to.send(302, '', { location: '/card' }), 'unknown')],
      ['not a key set', (agent) => agent.set((to) => to.send(200, '[]'), 'unknown')],
    ])('a key server that is %s leaves the card unverified until it answers', async (_name, breakDown) => {
      const agent = await signed(key);
      breakDown(agent);
      const { status, body } = await register(agent);
      expect([status, body.signature.state, body.health]).toEqual([201, 'unverified', 'healthy']);
      expect(body.signature.reason).toMatch('cannot be read');
      serveKeys(agent, key);
      expect(await refetch()).toMatchObject({
        quarantine: null,
        signature: { state: 'verified', pinnedThumbprint: key.thumbprint },
      });
    });

    it.each([
      ['1.0', false],
      ['1.0 and 0.3', true],
    ])('a card of %s that the official SDK signed and serves is verified', async (_versions, isBoth) => {
      const securitySchemes = { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } };
      const agent = await stub({ securitySchemes, skills: [{ id: 'work', description: 'Arbeit für alle' }] });
      const older = { url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' };
      if (isBoth) (agent.card.supportedInterfaces as object[]).push(older);
      const jku = `${agent.url}/jwks.json`;
      const sign = generateAgentCardSignature(key.privateKey, { alg: key.alg, kid: key.kid, typ: 'JOSE', jku });
      serveKeys(agent, key);
      agent.card = await servedBySdk(await sign(AgentCard.fromJSON(agent.card)), isBoth);
      expect((await register(agent)).body.signature).toMatchObject({ state: 'verified' });
    });

    it('a card that a gateway publishes is verified', async () => {
      for (const versions of [['1.0'], ['1.0', '0.3'], ['0.3']]) {
        const name = `ours-${versions.join('-').replaceAll('.', '')}`;
        const executor = { kind: 'echo' };
        const published = { name, description: 'Ours.', executor, a2a_enabled: true, protocolVersions: versions };
        expect((await gateway.call('POST', '/api/a2a/published', published)).status).toBe(201);
        const url = `${gateway.url}/a2a/agents/${name}`;
        const { body } = await gateway.call('POST', path, { url });
        expect([versions, body]).toMatchObject([versions, { signature: { state: 'verified' } }]);
      }
    });
  });

  describe('later', () => {
    it('the pinned key stays valid, also for another card, and needs no approval outside production', async () => {
      const agent = await signed(key);
      await register(agent);
      agent.card.description = 'New.';
      await signCardOf(agent, key);
      expect(await refetch()).toMatchObject({
        quarantine: null,
        card: { description: 'New.' },
        signature: { state: 'verified' },
      });
    });

    it('a forged card is not accepted; the previous one stays in use, degraded, with the reason', async () => {
      const agent = await signed(key);
      await register(agent);
      agent.card.description = 'Evil.';
      const after = await refetch();
      expect(after).toMatchObject({ health: 'degraded', quarantine: null, signature: { state: 'verified' } });
      expect(after.card.description).not.toBe('Evil.');
      expect(after.lastError).toMatch('forged');
      expect(await isCalled()).toBe(true);
      await signCardOf(agent, key);
      expect(await refetch()).toMatchObject({ health: 'healthy', lastError: null, card: { description: 'Evil.' } });
    });

    it('another key waits for approval even when changes are accepted, and the approval pins it', async () => {
      const agent = await signed(key);
      await register(agent);
      await signCardOf(agent, other);
      const waits = await refetch();
      expect(waits).toMatchObject({
        health: 'healthy',
        quarantine: { cardHash: expect.any(String) },
        signature: {
          state: 'verified',
          keyThumbprint: other.thumbprint,
          pinnedThumbprint: key.thumbprint,
          reason: 'signed by another key than the pinned one',
        },
      });
      expect((await call()).error.code).toBe(-32003);
      const { items } = (await gateway.call('GET', `${path}/signed/changes`)).body;
      expect(items[0].changes).toContainEqual({
        path: '/signatures/keyThumbprint',
        kind: 'changed',
        before: key.thumbprint,
        after: other.thumbprint,
      });
      const { items: noted } = (await gateway.call('GET', '/api/audit/events?type=agent.quarantined')).body;
      expect(noted[0]).toMatchObject({
        agent: 'signed',
        reason: 'signature_changed',
        cardHash: waits.quarantine.cardHash,
      });

      expect(await refetch()).toMatchObject({ quarantine: waits.quarantine, updatedAt: waits.updatedAt });
      expect((await approve(waits.quarantine.cardHash)).body).toMatchObject({
        quarantine: null,
        signature: { keyThumbprint: other.thumbprint, pinnedThumbprint: other.thumbprint },
      });
      expect(await refetch()).toMatchObject({ quarantine: null, signature: { reason: null } });
      expect(await isCalled()).toBe(true);
      await signCardOf(agent, key);
      expect((await refetch()).quarantine).not.toBeNull();
    });

    it('a key that was replaced after the review is not approved', async () => {
      const agent = await signed(key);
      await register(agent);
      const [mine, evil] = [await cardSigningKey('next'), await cardSigningKey('next')];
      await signCardOf(agent, mine);
      const looked = await refetch();
      await signCardOf(agent, evil);
      expect((await refetch()).signature.keyThumbprint).toBe(evil.thumbprint);
      expect((await approve(looked.quarantine.cardHash)).status).toBe(409);
    });

    it('a refresh that began before an approval does not undo it', async () => {
      const agent = await signed(key);
      await register(agent);
      await signCardOf(agent, other);
      const { quarantine } = await refetch();
      let release = (): void => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      agent.set(async (to) => {
        await released;
        to.send(200, JSON.stringify({ keys: [other.jwk] }));
      }, 'unknown');
      const asked = agent.waitForRequests(agent.requests.length + 1);
      const looking = refetch();
      await asked;
      expect((await approve(quarantine.cardHash)).status).toBe(200);
      release();
      expect(await looking).toMatchObject({ quarantine: null, signature: { pinnedThumbprint: other.thumbprint } });
      expect(await isCalled()).toBe(true);
    });

    it('a lost signature waits for approval', async () => {
      const agent = await signed(key);
      await register(agent);
      delete agent.card.signatures;
      const waits = await refetch();
      expect(waits.signature).toMatchObject({ state: 'unsigned', pinnedThumbprint: key.thumbprint });
      expect(await isCalled()).toBe(false);
      const approved = (await approve(waits.quarantine.cardHash)).body;
      expect(approved).toMatchObject({ quarantine: null, signature: { state: 'unsigned', pinnedThumbprint: null } });
      expect(await refetch()).toMatchObject({ quarantine: null });
    });

    it('one signature of the pinned key is enough; an invalid one with its id is refused', async () => {
      const agent = await signed(key);
      await register(agent);
      await signCardOf(agent, other, key);
      expect(await refetch()).toMatchObject({ quarantine: null, signature: { keyThumbprint: key.thumbprint } });
      const [second, first] = agent.card.signatures as Record<string, string>[];
      agent.card.signatures = [second, { ...first, signature: second!.signature }];
      expect(await refetch()).toMatchObject({ health: 'degraded', quarantine: null });
    });

    it('another key under the id of the pinned one is refused, also when the key set has it', async () => {
      const agent = await signed(key);
      await register(agent);
      const evil = await cardSigningKey(key.kid);
      await signCardOf(agent, evil);
      expect(await refetch()).toMatchObject({
        health: 'degraded',
        quarantine: null,
        lastError: expect.stringMatching('forged'),
        signature: { keyThumbprint: key.thumbprint, pinnedThumbprint: key.thumbprint },
      });
    });

    it('a key that is no longer in its key set counts as withdrawn', async () => {
      const agent = await signed(key);
      await register(agent);
      serveKeys(agent, other);
      const waits = await refetch();
      expect(waits.signature).toMatchObject({ state: 'unverified', reason: 'the key "key-1" was withdrawn' });
      expect(waits.quarantine).not.toBeNull();
      expect(await isCalled()).toBe(false);
    });

    it('a key server that is down changes nothing: pinned keys verify, others wait, as the state shows', async () => {
      const agent = await signed(key);
      await register(agent);
      loseKeys(agent);
      const first = await refetch();
      expect(first).toMatchObject({ health: 'healthy', lastError: null, quarantine: null });
      expect(first.signature).toMatchObject({ state: 'verified', reason: expect.stringMatching('pinned key') });
      expect((await refetch()).updatedAt).toBe(first.updatedAt);

      agent.card.description = 'Later.';
      await signCardOf(agent, other);
      loseKeys(agent);
      const unchanged = await refetch();
      expect(unchanged).toMatchObject({ health: 'healthy', quarantine: null, signature: { state: 'verified' } });
      expect(unchanged.card.description).not.toBe('Later.');
      expect(await isCalled()).toBe(true);
      serveKeys(agent, other);
      expect(await refetch()).toMatchObject({ card: { description: 'Later.' }, quarantine: expect.anything() });
    });

    it('each org has its own pins', async () => {
      const globex = await gateway.tokenOf('globex', 'gina', 'admin');
      const agent = await signed(key);
      await register(agent);
      await register(agent, gateway, globex);
      await signCardOf(agent, other);
      const waits = await refetch();
      await approve(waits.quarantine.cardHash);
      const there = await refetch(gateway, globex);
      expect(there).toMatchObject({ quarantine: expect.anything(), signature: { pinnedThumbprint: key.thumbprint } });
      expect((await refetch()).quarantine).toBeNull();
    });
  });
});
