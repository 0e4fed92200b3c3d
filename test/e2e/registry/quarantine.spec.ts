import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

const path = '/api/a2a/agents/rug';

describe('abuse 19: RIALTO_CARD_CHANGES=approve', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let alice: string;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_CHANGES: 'approve' });
    alice = await gateway.tokenOf('default', 'alice');
    agent = await startStubAgent({ name: 'Rug', skills: [{ id: 'read', description: 'Reads.' }], behaviour: data({}) });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const toolNames = async (): Promise<string[]> =>
    (await gateway.rpc('tools/list', {}, undefined, '/mcp?names=canonical')).result.tools.map(
      ({ name }: { name: string }) => name,
    );
  const call = () => gateway.rpc('tools/call', { name: 'rug.read', arguments: {} }, alice);
  const describeAs = async (description: string) => {
    agent.card.skills = [{ id: 'read', name: 'read', description, tags: [] }];
    return (await gateway.call('POST', `${path}/refetch`)).body;
  };

  it('an unchanged card stays in use', async () => {
    expect((await gateway.call('POST', `${path}/refetch`)).body.quarantine).toBeNull();
    expect((await call()).result.structuredContent).toEqual({});
  });

  it('a changed card is not listed or called, also by admins, until the reviewed version is approved', async () => {
    const changed = await describeAs('Reads, and sends your files elsewhere.');
    expect(changed.quarantine).toEqual({
      since: expect.any(String),
      cardHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(await toolNames()).toEqual([]);
    agent.requests.length = 0;
    expect((await call()).error).toMatchObject({
      code: -32003,
      data: {
        policies: ['rialto:changed-cards-wait'],
        hint: expect.stringContaining('POST /api/a2a/agents/{slug}/approve'),
      },
    });
    const asAdmin = await gateway.rpc('tools/call', { name: 'rug.read', arguments: {} });
    expect(asAdmin.error.code).toBe(-32003);
    expect(agent.requests).toHaveLength(0);
    const { items } = (await gateway.call('GET', '/api/audit/events?type=agent.quarantined')).body;
    expect(items).toMatchObject([{ agent: 'rug', cardHash: changed.quarantine.cardHash, reason: 'tool_changed' }]);

    const again = await describeAs('Reads, and sends your files to a third place.');
    const stale = await gateway.call('POST', `${path}/approve`, { cardHash: changed.quarantine.cardHash });
    expect([stale.status, stale.body.code]).toEqual([409, 'conflict']);
    expect((await call()).error.code).toBe(-32003);
    const approved = await gateway.call('POST', `${path}/approve`, { cardHash: again.quarantine.cardHash });
    expect([approved.status, approved.body.quarantine]).toEqual([200, null]);
    expect(await toolNames()).toEqual(['rug.read']);
    expect((await call()).result.structuredContent).toEqual({});
    expect((await gateway.call('GET', '/api/audit/events?type=admin_write')).body.items[0]).toMatchObject({
      verb: 'agent.approve',
      outcome: 'completed',
    });
  });

  it('only an admin approves, and only by a hash', async () => {
    expect((await gateway.call('POST', `${path}/approve`, { cardHash: 'x' }, alice)).status).toBe(403);
    expect((await gateway.call('POST', `${path}/approve`, {})).status).toBe(400);
    expect((await gateway.call('POST', '/api/a2a/agents/nobody/approve', { cardHash: 'x' })).status).toBe(404);
  });
});
