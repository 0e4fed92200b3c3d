import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  cardSigningKey,
  headerText,
  loseKeys,
  serveKeys,
  signatureOf,
  signCardOf,
} from '../../support/clients/card-signing.js';
import type { CardSigningKey } from '../../support/clients/card-signing.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const path = '/api/a2a/agents';

describe('RIALTO_CARD_SIGNATURES and the keys of the operator', () => {
  let key: CardSigningKey;
  let other: CardSigningKey;
  let folder: string;
  let agent: StubAgent;
  const gateways: TestGateway[] = [];

  beforeAll(async () => {
    [key, other] = [await cardSigningKey('key-1'), await cardSigningKey('key-2', 'EdDSA')];
    folder = mkdtempSync(join(tmpdir(), 'rialto-card-keys-'));
  });
  beforeEach(async () => {
    agent = await startStubAgent({ name: 'Signed' });
  });
  afterEach(async () => {
    await agent.close();
    for (const gateway of gateways.splice(0).reverse()) await gateway.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function gatewayWith(env: Record<string, string>, same?: TestGateway): Promise<TestGateway> {
    const gateway = await startTestGateway(env, same);
    gateways.push(gateway);
    return gateway;
  }
  const register = (gateway: TestGateway) => gateway.call('POST', path, { url: agent.url });
  const refetch = async (gateway: TestGateway) => (await gateway.call('POST', `${path}/signed/refetch`)).body;
  const approve = (gateway: TestGateway, cardHash: string) =>
    gateway.call('POST', `${path}/signed/approve`, { cardHash });
  const isCalled = async (gateway: TestGateway) =>
    (await gateway.rpc('tools/call', { name: 'signed.work', arguments: {} })).error === undefined;
  const jwks = (...keys: object[]) => JSON.stringify({ keys });

  describe('require', () => {
    it('registers only a verified card, and allows no approval of an unverified one', async () => {
      const gateway = await gatewayWith({ RIALTO_CARD_SIGNATURES: 'require' });
      expect((await register(gateway)).body).toMatchObject({
        code: 'card_invalid',
        signature: 'the card is not signed',
      });
      await signCardOf(agent, key);
      loseKeys(agent);
      expect((await register(gateway)).body.signature).toMatch('cannot be read');
      serveKeys(agent, key);
      expect((await register(gateway)).body.signature.state).toBe('verified');

      loseKeys(agent);
      expect(await refetch(gateway)).toMatchObject({ health: 'healthy', quarantine: null });
      expect(await isCalled(gateway)).toBe(true);

      delete agent.card.signatures;
      const waits = await refetch(gateway);
      const refused = await approve(gateway, waits.quarantine.cardHash);
      expect([refused.status, refused.body.detail]).toEqual([422, expect.stringMatching('require')]);
      expect(await isCalled(gateway)).toBe(false);
      await signCardOf(agent, other);
      expect((await approve(gateway, (await refetch(gateway)).quarantine.cardHash)).status).toBe(200);
      expect(await isCalled(gateway)).toBe(true);
    });

    it('disables agents that were registered before, whether their cards can be fetched or not', async () => {
      const before = await gatewayWith({});
      await register(before);
      const down = await startStubAgent({ name: 'Down' });
      await before.call('POST', path, { url: down.url });
      await down.close();
      const gateway = await gatewayWith({ RIALTO_CARD_SIGNATURES: 'require' }, before);
      expect((await refetch(gateway)).quarantine).not.toBeNull();
      const { body } = await gateway.call('POST', `${path}/down/refetch`);
      expect(body).toMatchObject({ health: 'unreachable', quarantine: expect.anything() });
    });
  });

  it('off accepts all cards, shows that they were not checked, and keeps pins for later', async () => {
    const before = await gatewayWith({});
    await signCardOf(agent, key);
    await register(before);
    const off = await gatewayWith({ RIALTO_CARD_SIGNATURES: 'off', RIALTO_CARD_CHANGES: 'approve' }, before);
    agent.card.signatures = [{ protected: headerText({ alg: 'none', kid: 'x' }), signature: '' }];
    expect(await refetch(off)).toMatchObject({ quarantine: null, signature: { state: 'unchecked' } });
    await off.call('DELETE', `${path}/signed`);
    expect((await register(off)).status).toBe(201);
    await off.call('DELETE', `${path}/signed`);

    await signCardOf(agent, key);
    await register(before);
    await refetch(off);
    await signCardOf(agent, other);
    await refetch(off);
    const after = await refetch(before);
    expect(after).toMatchObject({ quarantine: expect.anything(), signature: { pinnedThumbprint: key.thumbprint } });
  });

  describe('keys of the operator', () => {
    it('are the only valid ones for their hosts, and change without an approval', async () => {
      const file = join(folder, 'keys.json');
      writeFileSync(file, jwks(key.jwk, other.jwk));
      const gateway = await gatewayWith({ RIALTO_CARD_KEYS: file, RIALTO_CARD_SIGNATURES: 'require' });
      const evil = await cardSigningKey('evil');
      await signCardOf(agent, evil);
      expect((await register(gateway)).body.signature).toBe('no key "evil" is known');
      await signCardOf(agent, { ...evil, kid: key.kid });
      expect((await register(gateway)).body.signature).toMatch('forged');

      agent.card.signatures = [await signatureOf({ ...agent.card, signatures: undefined }, key)];
      expect((await register(gateway)).body.signature).toMatchObject({
        state: 'verified',
        pinnedThumbprint: key.thumbprint,
      });
      agent.card.signatures = [await signatureOf({ ...agent.card, signatures: undefined }, other)];
      expect(await refetch(gateway)).toMatchObject({
        quarantine: null,
        signature: { pinnedThumbprint: other.thumbprint },
      });
      expect(agent.requests).toEqual([]);
    });

    it('apply only to the hosts that they name', async () => {
      const elsewhere = { ...key.jwk, hosts: ['agents.example.com'] };
      const gateway = await gatewayWith({ RIALTO_CARD_KEYS: jwks(elsewhere) });
      await signCardOf(agent, other);
      expect((await register(gateway)).body.signature.state).toBe('verified');
      const here = { ...key.jwk, hosts: ['127.0.0.1'] };
      const strict = await gatewayWith({ RIALTO_CARD_KEYS: jwks(here) }, gateway);
      const waits = await refetch(strict);
      expect(waits).toMatchObject({ quarantine: expect.anything(), signature: { state: 'unverified' } });
    });

    it('no longer apply after the operator removed them', async () => {
      const gateway = await gatewayWith({ RIALTO_CARD_KEYS: jwks(key.jwk, other.jwk) });
      await signCardOf(agent, key);
      await register(gateway);
      const later = await gatewayWith({ RIALTO_CARD_KEYS: jwks(other.jwk) }, gateway);
      expect((await refetch(later)).quarantine).not.toBeNull();
    });

    it('stop a start when they are invalid', async () => {
      const bad = [`${folder}/none.json`, '{', jwks({ kty: 'oct', k: 'x', kid: 'a' }), jwks({ ...key.jwk, d: 'x' })];
      for (const RIALTO_CARD_KEYS of bad)
        await expect(startTestGateway({ RIALTO_CARD_KEYS })).rejects.toThrow('RIALTO_CARD_KEYS');
    });
  });

  it('allowed origins of the operator may serve the keys of others', async () => {
    const keys = await startStubAgent();
    serveKeys(keys, key);
    const gateway = await gatewayWith({ RIALTO_CARD_KEY_ORIGINS: keys.url });
    const jku = `${keys.url}/jwks.json`;
    agent.card.signatures = [await signatureOf(agent.card, key, { jku })];
    expect((await register(gateway)).body.signature.state).toBe('verified');
    await keys.close();
  });

  it('in production the outbound rules apply to keys: no plain HTTP, no private address', async () => {
    const gateway = await gatewayWith({
      RIALTO_OUTBOUND_ALLOW: agent.url,
      RIALTO_CARD_KEY_ORIGINS: 'http://127.0.0.1:9',
    });
    agent.card.signatures = [await signatureOf(agent.card, key, { jku: 'http://127.0.0.1:9/jwks.json' })];
    expect((await register(gateway)).body.signature).toMatchObject({
      state: 'unverified',
      reason: 'the URL of its jku is not allowed',
    });
  });

  it('RIALTO_CARD_CHANGES=approve: an added signature is a change; a new one by the same key is not', async () => {
    const gateway = await gatewayWith({ RIALTO_CARD_CHANGES: 'approve' });
    await register(gateway);
    await signCardOf(agent, key);
    const waits = await refetch(gateway);
    expect(waits).toMatchObject({ quarantine: expect.anything(), signature: { pinnedThumbprint: key.thumbprint } });
    await approve(gateway, waits.quarantine.cardHash);
    await signCardOf(agent, key);
    expect((await refetch(gateway)).quarantine).toBeNull();
  });

  it('an agent of an older version is pinned at the next refresh without approval; a forged one waits', async () => {
    const gateway = await gatewayWith({ RIALTO_CARD_CHANGES: 'approve' });
    const forged = await startStubAgent({ name: 'Forged' });
    await signCardOf(agent, key);
    await register(gateway);
    await gateway.call('POST', path, { url: forged.url });
    forged.card.signatures = [{ protected: headerText({ alg: 'none', kid: 'x' }), signature: '' }];
    const text = JSON.stringify(forged.card);
    await gateway.sql(`update agent_cards set card = $1, etag = null where slug = 'forged'`, [text]);
    await gateway.sql('update agent_cards set signature = null, pinned_key = null');
    expect(await refetch(gateway)).toMatchObject({
      quarantine: null,
      signature: { pinnedThumbprint: key.thumbprint },
    });
    const { body } = await gateway.call('POST', `${path}/forged/refetch`);
    expect(body).toMatchObject({ quarantine: expect.anything(), signature: { state: 'invalid' } });
    const refused = await gateway.call('POST', `${path}/forged/approve`, { cardHash: body.quarantine.cardHash });
    expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
    await forged.close();
  });

  it('pins and quarantines survive a restart, and the next process checks by itself', async () => {
    const first = await gatewayWith({});
    await signCardOf(agent, key);
    const { body } = await register(first);
    await signCardOf(agent, other);
    const beside = first.beside({ RIALTO_CARD_REFRESH_SECONDS: '1' });
    const row = async () =>
      (await first.sql('select quarantined_at, signature, pinned_key from agent_cards where id = $1', [body.id]))[0];
    await first.sql('update agent_cards set next_refresh_at = now() where id = $1', [body.id]);
    const held = await eventually(row, ({ quarantined_at: at }) => at !== null);
    expect(held).toMatchObject({ pinned_key: { kid: key.kid }, signature: { key: { kid: other.kid } } });
    beside.child.kill('SIGKILL');
    await beside.ended;

    const second = await gatewayWith({}, first);
    const waits = (await second.call('GET', `${path}/signed`)).body;
    expect(await isCalled(second)).toBe(false);
    expect((await approve(second, waits.quarantine.cardHash)).body.signature.pinnedThumbprint).toBe(other.thumbprint);
    expect((await refetch(first)).quarantine).toBeNull();
  });
});
