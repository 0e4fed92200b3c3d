import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

describe('approvals of calls to registered agents', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let bob: string;
  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'Ops', behaviour: data({ ok: true }) });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    await publish(gateway, { name: 'ours', executor: { kind: 'remote', agentId: 'ops' } });
    const text = '@ask forbid(principal, action == Action::"a2a_invoke", resource in A2AAgent::"ops");';
    expect((await gateway.call('POST', '/api/policies', { name: 'ask', text })).status).toBe(201);
    bob = await gateway.tokenOf('default', 'bob');
  });
  beforeEach(() => void (agent.requests.length = 0));
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const sent = () => agent.requests.filter(({ operation }) => operation === 'send' || operation === 'stream');
  const approve = (id: string) => gateway.call('POST', `/api/approvals/${id}`, { decision: 'approve' });
  const send = async (text: string) =>
    (await rpc(gateway, 'SendMessage', { message: userMessage(text) }, { agent: 'ours', token: bob })).task.status;

  it('a skill that is called as a tool waits with its arguments', async () => {
    const call = async (args: object) => gateway.rpc('tools/call', { name: 'ops.work', arguments: args }, bob);
    const { error } = await call({ target: 'staging' });
    expect(error.data).toMatchObject({ code: 'approval_required', verb: 'ops.work' });
    await approve(error.data.approvalId);
    expect((await call({ target: 'production' })).error.data.code).toBe('approval_required');
    expect(agent.requests).toEqual([]);
    expect((await call({ target: 'staging' })).result.structuredContent).toEqual({ ok: true });
    expect((await call({ target: 'staging' })).error.data.code).toBe('approval_required');
    expect(sent()).toHaveLength(1);
  });

  it('the work of a task waits with the text of its message: the task is rejected and names the page', async () => {
    const first = await send('restart the web server');
    expect([first.state, first.message.parts[0].text]).toEqual([
      'TASK_STATE_REJECTED',
      expect.stringContaining(`${gateway.url}/approvals/`),
    ]);
    const [, id] = /approvals\/([0-9a-f-]{36})/.exec(first.message.parts[0].text)!;
    expect((await gateway.call('GET', `/api/approvals/${id}`)).body).toMatchObject({
      caller: 'user:bob',
      input: { parts: [{ text: 'restart the web server' }] },
    });
    expect((await approve(id!)).status).toBe(200);
    expect((await send('delete the web server')).state).toBe('TASK_STATE_REJECTED');
    expect(agent.requests).toEqual([]);
    expect((await send('restart the web server')).state).toBe('TASK_STATE_COMPLETED');
    expect((await send('restart the web server')).state).toBe('TASK_STATE_REJECTED');
    expect(sent()).toHaveLength(1);
  });
});
