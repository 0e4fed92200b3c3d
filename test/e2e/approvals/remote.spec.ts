import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { ApprovalStore } from '../../../src/approvals/storage/approval.store.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, sequence } from '../../support/stubs/stub-behaviours.js';
import { resetAtOnce } from '../../support/stubs/stub-hostile.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

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
    expect(first.message.metadata).toEqual({
      errorCode: 'approval_required',
      approvalId: id,
      approvalUrl: `${gateway.url}/approvals/${id}`,
      approvers: ['admin'],
      expiresAt: expect.any(String),
    });
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

  it('an attempt after a broken connection needs no second approval, and has the same message id', async () => {
    const { message } = await send('back up');
    await approve(message.metadata.approvalId);
    agent.set(sequence(resetAtOnce, data({ ok: true })), 'stream');
    expect((await send('back up')).state).toBe('TASK_STATE_COMPLETED');
    const ids = sent().map(({ json }: any) => json.params.message.messageId);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
    const used = await gateway.sql('select state, uses_left from approvals where id = $1', [
      message.metadata.approvalId,
    ]);
    expect(used).toEqual([{ state: 'used', uses_left: 0 }]);
    expect((await send('back up')).state).toBe('TASK_STATE_REJECTED');
  });

  it('attempts at once of one act use an approval once, and those of another act need their own', async () => {
    const { message } = await send('rotate');
    await approve(message.metadata.approvalId);
    const [{ org_id: org, digest }] = await gateway.sql('select org_id, digest from approvals where id = $1', [
      message.metadata.approvalId,
    ]);
    await gateway.sql('update approvals set uses_left = 2 where digest = $1', [digest]);
    const store = gateway.gateway.get(ApprovalStore);
    const use = async (key?: string) => (await store.use(org, digest, randomUUID(), key))?.usesLeft;
    const locker = new Client({ connectionString: gateway.database.url });
    await locker.connect();
    await locker.query('begin');
    await locker.query('select from approvals where digest = $1 for update', [digest]);
    const uses = [1, 2, 3].map(() => use('a-0'));
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await eventually(
      () => gateway.sql(waiting),
      ({ length }) => length === uses.length,
    );
    await locker.query('commit');
    await locker.end();
    expect(await Promise.all(uses)).toEqual([1, 1, 1]);
    expect([await use('b-0'), await use('a-0'), await use('c-0'), await use()]).toEqual([0, 0, undefined, undefined]);
    await gateway.sql(`update approvals set used_at = now() - interval '25 hours' where digest = $1`, [digest]);
    expect(await use('a-0')).toBeUndefined();
  });
});

describe('an approved call of a tool by a process that is killed', () => {
  let home: TestGateway;
  let upstream: TestUpstream;
  beforeAll(async () => {
    home = await startTestGateway({ RIALTO_ROLE: 'api' });
    upstream = await TestUpstream.start();
  });
  afterAll(async () => {
    await home.close();
    await upstream.close();
  });

  it('is made again by another process without a second question', async () => {
    let isStuck = true;
    const answer = () => (isStuck ? new Promise(() => undefined) : { content: [{ type: 'text', text: 'done' }] });
    upstream.add('look', answer, { annotations: { readOnlyHint: true } });
    await home.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    await publish(home, { name: 'bank', executor: { kind: 'mcp-tool', serverId: 'bank', tool: 'look' } });
    const text = '@ask forbid(principal, action == Action::"mcp_call", resource in McpServer::"bank");';
    expect((await home.call('POST', '/api/policies', { name: 'ask', text })).status).toBe(201);
    const options = { agent: 'bank', token: await home.tokenOf('default', 'bob') };
    const send = async (): Promise<string> => {
      const message = userMessage('', { parts: [{ data: { text: 'x' } }] });
      const params = { message, configuration: { returnImmediately: true } };
      return (await rpc(home, 'SendMessage', params, options)).task.id;
    };
    const end = (id: string) =>
      eventually(
        () => rpc(home, 'GetTask', { id }, options),
        ({ status }) => !['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'].includes(status.state),
      );
    const worker = home.beside({ RIALTO_ROLE: 'worker' });
    await worker.ready;
    const { status } = await end(await send());
    const { approvalId } = status.message.metadata;
    expect((await home.call('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })).status).toBe(200);
    const id = await send();
    await eventually(
      () => upstream.calls.length,
      (calls) => calls === 1,
    );
    worker.child.kill('SIGKILL');
    await worker.ended;
    isStuck = false;
    await home.beside({ RIALTO_ROLE: 'worker' }).ready;
    expect((await end(id)).artifacts?.[0].parts).toEqual([{ text: 'done' }]);
    expect(upstream.calls).toHaveLength(2);
  });
});
