import { publish } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectMcp, modernRequest } from '../../support/clients/mcp-clients.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { ask, asyncTask, data, failed, never, text } from '../../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../../support/stubs/stub-call.js';

const capable = {
  _meta: { 'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
};

/**
 * Tests the extension io.modelcontextprotocol/tasks of the 2026-07-28 revision, with calls that outlive the wait of
 * their caller.
 */
describe('MCP tasks', () => {
  let gateway: TestGateway;
  let agent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway({
      A2A_CONTINUATION_POLL_MS: '50',
      A2A_CONTINUATION_RUN_WAIT_MS: '5000',
      A2A_CONTINUATION_RESCHEDULE_MS: '50',
    });
    agent = await startStubAgent({ card: 'v03', name: 'Slow', capabilities: { streaming: false } });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, timeoutMs: 2_000 });
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const post = async (method: string, params: Record<string, unknown>, token = gateway.token): Promise<any> => {
    const { headers, body } = modernRequest(method, params);
    const named: Record<string, string> = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
    return (await gateway.call('POST', '/mcp', body, token, { ...headers, ...named })).body;
  };
  const begin = async (behaviour: Behaviour): Promise<any> => {
    agent.set(behaviour);
    return (await post('tools/call', { name: 'slow.work', arguments: {}, ...capable })).result;
  };
  const settled = (taskId: string) =>
    eventually(
      async () => (await post('tasks/get', { taskId, ...capable })).result,
      ({ status }) => status !== 'working',
    );

  it('a continued call is a task for a client with the extension, and a result for one without', async () => {
    const handle = await begin(asyncTask(15, data({ n: 1 })));
    expect(handle).toMatchObject({
      resultType: 'task',
      status: 'working',
      pollIntervalMs: 2_000,
      ttlMs: 30 * 86_400_000,
    });
    expect(Math.abs(Date.parse(handle.createdAt) - Date.now())).toBeLessThan(60_000);
    const done = await settled(handle.taskId);
    expect(done).toMatchObject({
      resultType: 'complete',
      taskId: handle.taskId,
      status: 'completed',
      result: { content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1 } },
    });
    agent.set(never);
    const { result } = await post('tools/call', { name: 'slow.work', arguments: {} });
    expect(result).toMatchObject({ resultType: 'complete', structuredContent: { state: 'working' } });
    await post('tasks/cancel', { taskId: result.structuredContent.taskId });
  });

  it('is declared by discovery, only in that revision', async () => {
    const { result } = await post('server/discover', {});
    expect(result.capabilities.extensions).toEqual({ 'io.modelcontextprotocol/tasks': {} });
    const older = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    expect((await gateway.rpc('initialize', older)).result.capabilities.extensions).toBeUndefined();
  });

  it('a failure is the error of the call', async () => {
    const { taskId } = await begin(asyncTask(15, failed('out of paper')));
    expect(await settled(taskId)).toMatchObject({
      status: 'failed',
      error: { code: -32204, message: expect.stringContaining('out of paper'), data: { taskId, state: 'failed' } },
    });
  });

  it('is canceled, once', async () => {
    const { taskId } = await begin(never);
    agent.cancels.length = 0;
    expect((await post('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' });
    expect(await agent.waitForCancels()).toHaveLength(1);
    expect(await settled(taskId)).toMatchObject({ status: 'cancelled' });
    expect((await post('tasks/cancel', { taskId })).error).toBeUndefined();
  });

  it('a question is sent to the client, and its answer to the agent', async () => {
    const { taskId } = await begin(asyncTask(15, ask('Which branch?', text('thanks'))));
    const asking = await settled(taskId);
    expect(asking).toMatchObject({ status: 'input_required', statusMessage: 'Which branch?' });
    const [[key, request]] = Object.entries<any>(asking.inputRequests) as [[string, any]];
    expect(request).toMatchObject({ method: 'elicitation/create', params: { message: 'Which branch?' } });
    for (const bad of [{ [key]: { action: 'accept', content: {} } }, { [key]: { action: 'accept' } }])
      expect((await post('tasks/update', { taskId, inputResponses: bad })).error.code).toBe(-32602);
    const other = { 'question-0': { action: 'accept', content: { answer: 'no' } } };
    expect((await post('tasks/update', { taskId, inputResponses: other })).error).toBeUndefined();
    expect((await post('tasks/get', { taskId })).result.status).toBe('input_required');
    const inputResponses = { [key]: { action: 'accept', content: { answer: 'main' } } };
    expect((await post('tasks/update', { taskId, inputResponses })).error).toBeUndefined();
    expect(await settled(taskId)).toMatchObject({ status: 'completed', result: { content: [{ text: 'thanks' }] } });
    const sent = agent.requests.filter(({ operation }) => operation === 'send').at(-1)!.json as any;
    expect(sent.params.message.parts).toEqual([{ kind: 'text', text: 'main' }]);
  });

  it('tasks of published agents are the same tasks', async () => {
    await publish(gateway, { name: 'asking', executor: { kind: 'echo', ask: 'Really?' } });
    const params = { name: 'send_to_agent', arguments: { agent: 'asking', message: 'go' }, ...capable };
    const { result } = await post('tools/call', params);
    const { taskId } = result.structuredContent;
    const { inputRequests } = (await post('tasks/get', { taskId })).result;
    const inputResponses = { [Object.keys(inputRequests)[0]!]: { action: 'accept', content: { answer: 'yes' } } };
    await post('tasks/update', { taskId, inputResponses });
    expect((await settled(taskId)).status).toBe('completed');
  });

  it('tasks of others and invalid ids are not found', async () => {
    const { taskId } = await begin(never);
    const stranger = await gateway.tokenOf('elsewhere', 'eve', 'admin');
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update'])
      for (const [id, token] of [
        [taskId, stranger],
        ['no-such-task', gateway.token],
        ['01900000-0000-7000-8000-000000000001', gateway.token],
      ])
        expect((await post(method, { taskId: id, inputResponses: {} }, token)).error).toMatchObject({
          code: -32602,
          data: { code: 'task_not_found' },
        });
    for (const params of [{}, { taskId: 7 }, { taskId: '' }])
      expect((await post('tasks/get', params)).error.code).toBe(-32602);
    await post('tasks/cancel', { taskId });
  });

  it('the official client of that revision calls as before', async () => {
    agent.set(data({ quick: true }));
    const client = await connectMcp('pinned', `${gateway.url}/mcp`, gateway.token);
    expect((await client.callTool({ name: 'slow.work', arguments: {} })).structuredContent).toEqual({ quick: true });
    await client.close();
  });
});
