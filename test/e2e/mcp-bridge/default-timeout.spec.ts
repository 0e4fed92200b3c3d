import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, slow } from '../../support/stubs/stub-behaviours.js';

describe('the default timeout', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({
      card: 'v03',
      name: 'Slow',
      skills: [{ id: 'work' }],
      behaviour: slow(33_000, data({ late: true })),
    });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
  });
  afterAll(async () => {
    await agent.close();
    await gateway.close();
  });

  it('RE-25 ends a call after 30 s, before an answer that comes at 33 s', async () => {
    const started = performance.now();
    const { error } = await gateway.rpc('tools/call', { name: 'slow.work', arguments: {} });
    expect(error.code).toBe(-32201);
    expect((performance.now() - started) / 1_000).toBeGreaterThanOrEqual(29.9);
  });
});
