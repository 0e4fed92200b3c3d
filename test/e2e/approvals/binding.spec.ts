import { randomUUID } from 'node:crypto';
import { removePolicies } from '../../support/checks/policies.js';
import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { eventually } from '../../support/gateway/eventually.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

/** Policies that ask about an act on the skills of the agent `ops`. */
const asking = (annotations: string, when = '') =>
  `${annotations} forbid(principal, action == Action::"a2a_invoke", resource in A2AAgent::"ops") ${when};`;

describe('what an approval is bound to', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let bob: string;
  let fay: string;
  const open: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    const inputSchema = { type: 'object', properties: { target: { type: 'string' } } };
    const skills = [{ id: 'work' }, { id: 'typed', inputSchema }];
    agent = await startStubAgent({ name: 'Ops', skills, behaviour: data({ ok: true }) });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    await member('fay', ['finance']);
    fay = await signToken({ sub: 'fay' });
    bob = await gateway.tokenOf('default', 'bob');
  });
  beforeEach(() => void (agent.requests.length = 0));
  afterEach(() => removePolicies(gateway));
  afterAll(async () => {
    await gateway.close();
    await agent.close();
    for (const one of open) await one.close();
  });

  const member = (sub: string, groups: string[]) =>
    gateway.call('POST', '/api/orgs/default/members', { sub, role: 'member', groups });
  const store = async (text: string, name = 'ask') =>
    expect((await gateway.call('POST', '/api/policies', { name, text })).status).toBe(201);
  const approve = (id: string, token?: string) =>
    gateway.call('POST', `/api/approvals/${id}`, { decision: 'approve' }, token);
  const get = async (id: string) => (await gateway.call('GET', `/api/approvals/${id}`)).body;
  const sent = () => agent.requests.filter(({ operation }) => operation === 'send');
  const invoke = (args: object, more: object = {}) =>
    gateway.call('POST', '/api/a2a/invoke', { agentCardId: 'ops', skillId: 'work', args, ...more }, bob);
  const asked = async (args: object, more?: object): Promise<any> => {
    const { status, body } = await invoke(args, more);
    expect([status, body.code]).toEqual([409, 'approval_required']);
    return body;
  };

  it('the groups that the policies ask for at the time of the call, at every door', async () => {
    await store(asking('@ask("finance")'), 'finance');
    const junior = 'when { context.surface == "mcp" || principal in Group::"junior" }';
    await store(asking('@ask("board")', junior), 'board');
    const args = { amount: 100 };
    const { approvers, approvalId } = await asked(args);
    expect(approvers).toEqual(['finance']);
    expect((await approve(approvalId, fay)).status).toBe(200);
    const { error } = await gateway.rpc('tools/call', { name: 'ops.work', arguments: args }, bob);
    expect(error.data).toMatchObject({ code: 'approval_required', approvers: ['board', 'finance'] });
    await member('bob', ['junior']);
    await eventually(
      () => asked({ amount: 1 }),
      (one) => one.approvers.length === 2,
    );
    expect((await asked(args)).approvers).toEqual(['board', 'finance']);
    expect(sent()).toEqual([]);
    await member('bob', []);
    await eventually(
      () => asked({ amount: 1 }),
      (one) => one.approvers.length === 1,
    );
    expect((await invoke(args)).status).toBe(200);
    expect((await get(approvalId)).state).toBe('used');
  });

  it('nothing that is refused in any case: no question, and no use of an approval', async () => {
    await gateway.sql('delete from approvals');
    const published = { name: 'sec', executor: { kind: 'mailbox' }, a2a_accept_cleartext: false };
    await publish(gateway, published);
    await publish(gateway, { name: 'box' });
    const asks = { kind: 'echo', ask: 'Which one?' };
    const routes = { kind: 'routes', routes: [{ when: ['ask'], executor: asks }], otherwise: { kind: 'echo' } };
    await publish(gateway, { name: 'routed', executor: routes });
    const begun = async (text: string): Promise<string> =>
      (await rpc(gateway, 'SendMessage', { message: userMessage(text) }, { agent: 'routed', token: bob })).task.id;
    const [waiting, ended] = [await begun('ask'), await begun('done')];
    const onTasks = 'forbid(principal, action == Action::"task_submit", resource);';
    const onTools = 'forbid(principal, action == Action::"mcp_call", resource in McpServer::"bank");';
    await store(`${asking('@ask')} @ask ${onTasks} @ask ${onTools}`);
    const send = async (message: object, agent = 'box') =>
      (await rpcCall(gateway, 'SendMessage', { message }, { agent, token: bob })).body.error.code;
    expect(await send(userMessage('SECRET-CLEARTEXT'), 'sec')).toBe(-32005);
    expect(await send(userMessage('x', { taskId: ended }), 'routed')).toBe(-32004);
    await gateway.call('PATCH', '/api/a2a/published/routed', { a2a_accept_cleartext: false });
    expect(await send(userMessage('SECRET-CLEARTEXT', { taskId: waiting }), 'routed')).toBe(-32005);
    const nowhere = randomUUID();
    expect(await send(userMessage('x', { taskId: nowhere }))).toBe(-32001);
    expect(await send(userMessage('x', { referenceTaskIds: [nowhere] }))).toBe(-32001);
    const tools = (name: string, args: object) => gateway.rpc('tools/call', { name, arguments: args }, bob);
    expect((await tools('ops.typed', { target: 7 })).result.isError).toBe(true);
    expect((await tools('bank__nothing', {})).error.data.code).not.toBe('approval_required');
    expect((await invoke({ target: 7 }, { skillId: 'typed' })).status).toBe(400);
    expect((await invoke({}, { skillId: 'nothing' })).status).toBe(404);
    expect(await gateway.sql(`select verb from approvals where state = 'pending'`)).toEqual([]);
  });

  it('where the result goes: the webhook, the thread and the extensions', async () => {
    await store(asking('@ask'));
    const args = { n: 1 };
    const { approvalId } = await asked(args);
    await approve(approvalId);
    const webhook_url = `${agent.url}/hook`;
    const thread = { url: `${agent.url}/thread`, id: 't-1', token: 'thread-secret' };
    const withHook = await asked(args, { webhook_url: `${webhook_url}?key=1` });
    expect((await get(withHook.approvalId)).input).toEqual({ args, webhook_url });
    const other = await asked(args, { webhook_url: `${webhook_url}?key=2` });
    expect(other.approvalId).not.toBe(withHook.approvalId);
    const withThread = await asked(args, { thread: { ...thread, url: `${thread.url}?key=1` } });
    const { url, id } = thread;
    expect((await get(withThread.approvalId)).input).toEqual({ args, thread: { url, id } });
    expect(sent()).toEqual([]);
    expect((await invoke(args)).status).toBe(200);
  });

  it('where the task of a message goes: its push configuration and its extensions', async () => {
    await publish(gateway, { name: 'pushed' });
    await store('@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"pushed");');
    const send = async (more: Record<string, unknown>, configuration?: object): Promise<any> => {
      const params = { message: userMessage('hello', more), ...(configuration && { configuration }) };
      const headers = { 'a2a-version': '1.0', 'a2a-extensions': 'urn:x:one' };
      return (await rpcCall(gateway, 'SendMessage', params, { agent: 'pushed', token: bob, headers })).body;
    };
    const questionOf = async (answer: any) => {
      const { metadata } = answer.error.data.find((one: any) => one.metadata?.approvalId);
      return get(metadata.approvalId);
    };
    await approve((await questionOf(await send({}))).id);
    expect((await questionOf(await send({ extensions: ['urn:x:one'] }))).input.extensions).toEqual(['urn:x:one']);
    const url = `${agent.url}/push`;
    const pushed = (key: number) =>
      send({}, { taskPushNotificationConfig: { url: `${url}?key=${key}`, token: 'push-secret' } });
    const { id, input } = await questionOf(await pushed(1));
    expect(input.taskPushNotificationConfig).toEqual({ url });
    expect((await questionOf(await pushed(2))).id).not.toBe(id);
    expect((await send({})).result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('the very agent, not another one that gets its name later', async () => {
    const first = await startStubAgent({ name: 'Swap', behaviour: data({ ok: 1 }) });
    const second = await startStubAgent({ name: 'Swap', behaviour: data({ ok: 2 }) });
    await gateway.call('POST', '/api/a2a/agents', { url: first.url });
    await store(asking('@ask').replace('"ops"', '"swap"'));
    const call = () => invoke({}, { agentCardId: 'swap' });
    const { approvalId } = (await call()).body;
    await approve(approvalId);
    await gateway.call('DELETE', '/api/a2a/agents/swap');
    expect((await gateway.call('POST', '/api/a2a/agents', { url: second.url })).status).toBe(201);
    expect((await call()).body.code).toBe('approval_required');
    expect(second.requests.filter(({ operation }) => operation === 'send')).toEqual([]);
    await first.close();
    await second.close();
  });

  it('the very published agent and MCP server, not another one that gets its name later', async () => {
    const onTasks = '@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"again");';
    const onTools = '@ask forbid(principal, action == Action::"mcp_call", resource in McpServer::"bank");';
    await store(`${onTasks} ${onTools}`);
    const upstreams = [await TestUpstream.start(), await TestUpstream.start()];
    const register = async ({ url }: TestUpstream) =>
      expect((await gateway.call('POST', '/api/mcp/servers', { id: 'bank', url })).status).toBe(201);
    for (const upstream of upstreams) upstream.add('pay', () => ({ content: [{ type: 'text', text: 'paid' }] }));
    const pay = async () => (await gateway.rpc('tools/call', { name: 'bank__pay', arguments: {} }, bob)).error;
    const message = { ...userMessage('x'), messageId: 'm-again' };
    const send = async () =>
      (await rpcCall(gateway, 'SendMessage', { message }, { agent: 'again', token: bob })).body.error;
    await publish(gateway, { name: 'again' });
    await register(upstreams[0]!);
    await approve((await pay()).data.approvalId);
    await approve((await send()).data.find((one: any) => one.metadata?.approvalId).metadata.approvalId);
    expect((await gateway.call('DELETE', '/api/mcp/servers/bank')).status).toBeLessThan(300);
    expect((await gateway.call('DELETE', '/api/a2a/published/again')).status).toBeLessThan(300);
    await publish(gateway, { name: 'again' });
    await register(upstreams[1]!);
    expect((await pay())?.data.code).toBe('approval_required');
    expect((await send())?.message).toContain('a person must approve');
    for (const upstream of upstreams) await upstream.close();
  });

  it('the server and the agent behind a published agent, not others that get their names later', async () => {
    const upstreams = [await TestUpstream.start(), await TestUpstream.start()];
    const agents = [await startStubAgent({ name: 'Behind' }), await startStubAgent({ name: 'Behind' })];
    const register = async (index: number) => {
      const { url } = upstreams[index]!;
      expect((await gateway.call('POST', '/api/mcp/servers', { id: 'till', url })).status).toBe(201);
      expect((await gateway.call('POST', '/api/a2a/agents', { url: agents[index]!.url })).status).toBe(201);
    };
    for (const upstream of upstreams) upstream.add('pay', () => ({ content: [{ type: 'text', text: 'paid' }] }));
    await register(0);
    const tool = { kind: 'mcp-tool', serverId: 'till', tool: 'pay' };
    const remote = { kind: 'remote', agentId: 'behind' };
    const routes = { kind: 'routes', routes: [{ when: ['pay'], executor: tool }], otherwise: { kind: 'echo' } };
    const kinds = { tool, remote, routes };
    for (const [name, executor] of Object.entries(kinds)) await publish(gateway, { name: `by-${name}`, executor });
    await store(
      Object.keys(kinds)
        .map((n) => `@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"by-${n}");`)
        .join('\n'),
    );
    const send = async (name: string) =>
      (await rpcCall(gateway, 'SendMessage', { message: userMessage('pay') }, { agent: `by-${name}`, token: bob }))
        .body;
    const idOf = ({ error }: any) => error.data.find((one: any) => one.metadata?.approvalId).metadata.approvalId;
    const before: string[] = [];
    for (const name of Object.keys(kinds)) before.push(idOf(await send(name)));
    for (const id of before) await approve(id);
    await gateway.call('DELETE', '/api/mcp/servers/till');
    await gateway.call('DELETE', '/api/a2a/agents/behind');
    await register(1);
    for (const [index, name] of Object.keys(kinds).entries()) expect(idOf(await send(name))).not.toBe(before[index]);
    expect(upstreams[1]!.calls).toEqual([]);
    expect(agents[1]!.requests.filter(({ operation }) => operation === 'send')).toEqual([]);
    for (const one of [...upstreams, ...agents]) await one.close();
  });

  it('the arguments of a tool: what else the client says in _meta is not sent', async () => {
    const upstream = await TestUpstream.start();
    open.push(upstream);
    upstream.add('pay', () => ({ content: [{ type: 'text', text: 'paid' }] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'kiosk', url: upstream.url });
    const call = (more: object = {}) =>
      gateway.rpc('tools/call', { name: 'kiosk__pay', arguments: {}, _meta: { 'x/amount': 9 }, ...more }, bob);
    await call();
    await store('@ask forbid(principal, action == Action::"mcp_call", resource in McpServer::"kiosk");');
    const { error } = await call();
    await approve(error.data.approvalId);
    expect((await call({ _meta: { 'x/amount': 1_000_000 } })).result.content[0].text).toBe('paid');
    expect(JSON.stringify(upstream.metas)).toContain('"x/amount":9');
    expect(JSON.stringify(upstream.metas)).not.toContain('1000000');
  });

  it('the answers to the questions of a tool; its questions themselves need no further approval', async () => {
    const server = await startFixture('modern');
    open.push(server);
    await gateway.call('POST', '/api/mcp/servers', { id: 'asker', url: server.url });
    await publish(gateway, { name: 'asker', executor: { kind: 'mcp-tool', serverId: 'asker' } });
    await store('@ask forbid(principal, action == Action::"mcp_call", resource in McpServer::"asker");');
    const send = async (text: string, more: Record<string, unknown>): Promise<any> =>
      (await rpc(gateway, 'SendMessage', { message: userMessage(text, more) }, { agent: 'asker', token: bob })).task;
    const begin = () =>
      send('', { metadata: { skillId: 'test_input_required_result_elicitation' }, parts: [{ data: {} }] });
    const idOf = ({ status }: any): string => status.message.metadata.approvalId;
    const call = await begin();
    await gateway.call('POST', `/api/approvals/${idOf(call)}`, { decision: 'approve', uses: 3 });
    const answer = async (text: string) => {
      const asked = await begin();
      expect(asked.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
      return send(text, { taskId: asked.id });
    };
    const refused = await answer('Ada');
    expect([refused.status.state, (await get(idOf(refused))).input]).toEqual([
      'TASK_STATE_REJECTED',
      {
        args: {},
        questions: { user_name: expect.stringContaining('name') },
        answers: { user_name: { action: 'accept', content: { name: 'Ada' } } },
      },
    ]);
    await approve(idOf(refused));
    expect((await answer('Eve')).status.state).toBe('TASK_STATE_REJECTED');
    expect((await answer('Ada')).artifacts[0].parts).toEqual([{ text: 'Hello, Ada!' }]);
  });

  it('the questions that a client of the 2026-07-28 revision answers; the approver reads them', async () => {
    const server = await startFixture('modern');
    open.push(server);
    await gateway.call('POST', '/api/mcp/servers', { id: 'quiz', url: server.url });
    await store('@ask forbid(principal, action == Action::"mcp_call", resource in McpServer::"quiz");');
    const call = async (more: object = {}): Promise<any> => {
      const params = { name: 'quiz__test_input_required_result_elicitation', arguments: {}, ...more };
      const { headers, body } = modernRequest('tools/call', params, 1);
      (body as any).params._meta['io.modelcontextprotocol/clientCapabilities'] = { elicitation: { form: {} } };
      return (await gateway.call('POST', '/mcp', body, bob, headers)).body;
    };
    const idOf = ({ error }: any): string => error.data.approvalId;
    const approveTwice = (id: string) => gateway.call('POST', `/api/approvals/${id}`, { decision: 'approve', uses: 2 });
    await approveTwice(idOf(await call()));
    const { requestState } = (await call()).result;
    const answered = (name: string, state = requestState) =>
      call({
        requestState: state,
        inputResponses: { user_name: { action: 'accept', content: { name } } },
      });
    const question = await answered('Ada');
    expect((await get(idOf(question))).input).toEqual({
      args: {},
      questions: { user_name: expect.stringContaining('name') },
      answers: { user_name: { action: 'accept', content: { name: 'Ada' } } },
    });
    await approve(idOf(question));
    expect((await answered('Eve')).error.data.code).toBe('approval_required');
    expect((await answered('Ada', `${requestState}x`)).error).toBeDefined();
    expect((await answered('Ada')).result.content).toEqual([{ type: 'text', text: 'Hello, Ada!' }]);
  });
});
