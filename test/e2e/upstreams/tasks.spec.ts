import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { askAgain, continuationOf, quick } from '../../support/clients/remote-work.js';
import { done, extension, result, takingTasks, TaskUpstream, type Look } from '../../support/stubs/task-upstream.js';

const form = (name: string) => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Which printer?',
    requestedSchema: { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] },
  },
});
const asking = (name = 'printer'): Look => ({ status: 'input_required', inputRequests: { [`${name}-1`]: form(name) } });

/** Tests the extension io.modelcontextprotocol/tasks towards MCP servers: their tasks become tasks of the gateway. */
describe('a tool that answers with a task of its server', () => {
  let gateway: TestGateway;
  let server: TaskUpstream;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
    server = await TaskUpstream.start();
    const { status } = await gateway.call('POST', '/api/mcp/servers', { id: 'far', url: server.url, timeoutMs: 2_000 });
    expect(status).toBe(201);
    await publish(gateway, { name: 'worker', executor: { kind: 'mcp-tool', serverId: 'far', tool: 'work' } });
  });
  afterAll(async () => {
    await gateway.close();
    await server.close();
  });
  beforeEach(() => {
    server.look = () => ({ status: 'working' });
    server.updates.length = server.cancels.length = server.mcp.calls.length = 0;
  });

  const post = async (method: string, params: Record<string, unknown>, path = '/mcp'): Promise<any> => {
    const { headers, body } = modernRequest(method, params);
    const named: Record<string, string> = typeof params.taskId === 'string' ? { 'mcp-name': params.taskId } : {};
    return (await gateway.call('POST', path, body, gateway.token, { ...headers, ...named })).body;
  };
  const callTool = (more: object = {}) =>
    gateway.rpc('tools/call', { name: 'far__work', arguments: { n: 1 }, ...more });
  /** Starts a call that continues as a task, from a client with the extension. */
  const begin = async (): Promise<string> => {
    const { result: handle } = await post('tools/call', { name: 'far__work', arguments: {}, ...takingTasks });
    expect(handle).toMatchObject({ resultType: 'task', taskId: expect.any(String) });
    return handle.taskId;
  };
  const seen = (taskId: string, path?: string) =>
    eventually(
      async () => (await post('tasks/get', { taskId, ...takingTasks }, path)).result,
      ({ status }) => status !== 'working',
    );
  const rowOf = (taskId: string) => continuationOf(gateway, taskId);
  const viewOf = async (taskId: string) => (await gateway.call('GET', `/api/a2a/tasks/${taskId}`)).body;
  const after = (looks: number, then: Look) => (number: number) => (number > looks ? then : { status: 'working' });

  it("returns the server's result to a caller who waits, and is declared only to servers that declare it", async () => {
    const rows: any[] = [];
    let last: Look = { status: 'working' };
    server.look = () => last;
    const looking = eventually(
      () => gateway.sql(`select status from a2a_continuations where agent_slug = 'far'`),
      (found) => (rows.push(...found), found.length > 0),
    ).then(() => (last = done));
    const answer = await callTool();
    await looking;
    expect(answer.result).toEqual(result);
    expect(rows[0]).toEqual({ status: 'processing' });
    expect(server.calls).toEqual([
      { name: 'work', args: { n: 1 }, declared: expect.objectContaining({ extensions: { [extension]: {} } }) },
    ]);
    const polls = server.mcp.calls.filter(({ name }) => name === 'tasks/get');
    expect(polls.map(({ declared }) => declared.extensions)).toEqual(polls.map(() => ({ [extension]: {} })));
    const [row] = await gateway.sql(`select * from a2a_continuations where agent_slug = 'far'`);
    expect(row).toMatchObject({
      status: 'completed',
      agent_url: server.url,
      remote_task_id: 'far-1',
      last_error: null,
    });
    expect((await viewOf(row.task_id)).task).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
  });

  it('is a task of the gateway after the wait: for the tool task_status, the extension, and REST', async () => {
    server.look = () => ({ status: 'working', statusMessage: 'page 1' });
    const { structuredContent } = (await callTool()).result;
    expect(structuredContent).toMatchObject({ state: 'working', taskId: expect.any(String) });
    const mine = await begin();
    const rest = await gateway.call('POST', '/api/mcp/tools/call', { name: 'far__work', arguments: {} });
    const byOwnName = await gateway.call('POST', '/api/mcp/tools/call', { name: 'work', arguments: {} });
    const ids = [rest, byOwnName].map(({ body }) => body.result.structuredContent.taskId);
    expect(await post('tasks/get', { taskId: mine, ...takingTasks })).toMatchObject({
      result: { status: 'working', statusMessage: 'page 1' },
    });
    server.look = () => done;
    expect((await askAgain(gateway, structuredContent.taskId)).result).toEqual(result);
    expect(await seen(mine)).toMatchObject({ status: 'completed', result });
    for (const id of ids) expect((await askAgain(gateway, id)).result).toEqual(result);
    expect(server.calls).toHaveLength(4);
  });

  it('a client with the extension gets a task soon, for any duration at the server, and may disconnect', async () => {
    await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 600_000 });
    const before = server.cancels.length;
    const mine = await begin();
    server.look = () => done;
    expect(await seen(mine)).toMatchObject({ status: 'completed', result });
    expect(server.cancels).toHaveLength(before);
    await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 2_000 });
  });

  it('a result with isError is a result, and the task is completed', async () => {
    const failed = { content: [{ type: 'text', text: 'no paper' }], isError: true };
    server.look = after(1, { status: 'completed', result: failed });
    expect((await callTool()).result).toEqual(failed);
    server.look = () => ({ status: 'working' });
    const taskId = await begin();
    server.look = () => ({ status: 'completed', result: failed });
    expect(await seen(taskId)).toMatchObject({ status: 'completed', result: failed });
  });

  it('a failure is the error of the server, unchanged', async () => {
    const error = { code: -32_050, message: 'API rate limit exceeded', data: { per: 'day' } };
    server.look = after(1, { status: 'failed', error });
    expect((await callTool()).error).toEqual(error);
    server.look = () => ({ status: 'working' });
    const taskId = await begin();
    server.look = () => ({ status: 'failed', error });
    expect(await seen(taskId)).toMatchObject({ status: 'failed', error });
    expect((await askAgain(gateway, taskId)).error).toEqual(error);
  });

  it('a task that the server cancels is canceled', async () => {
    const taskId = await begin();
    server.look = () => ({ status: 'cancelled', statusMessage: 'out of hours' });
    expect(await seen(taskId)).toMatchObject({ status: 'cancelled', statusMessage: 'out of hours' });
  });

  it('a task that the server forgets fails, and is not called again', async () => {
    const taskId = await begin();
    server.looks.clear();
    expect(await seen(taskId)).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('Task not found'), data: { code: 'remote_error' } },
    });
    expect(await rowOf(taskId)).toMatchObject({ status: 'failed', last_error: expect.stringContaining('not found') });
    expect(server.calls).toHaveLength(1);
  });

  it('answers that are not a task of this call fail it', async () => {
    for (const bad of [{ status: 'resting' }, { taskId: 'another', status: 'working' }, { status: 'completed' }]) {
      server.look = () => ({ status: 'working' });
      const taskId = await begin();
      server.look = () => bad;
      expect(await seen(taskId)).toMatchObject({ status: 'failed', error: { code: -32203 } });
    }
  });

  it('a cancel here is sent to the server, once', async () => {
    const taskId = await begin();
    await post('tasks/cancel', { taskId });
    await eventually(
      () => rowOf(taskId),
      ({ status }) => status === 'completed',
    );
    expect(server.cancels).toEqual([expect.stringMatching(/^far-/)]);
    expect(await seen(taskId)).toMatchObject({ status: 'cancelled' });
  });

  it('a caller that leaves ends it', async () => {
    const slow = await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 30_000 });
    expect(slow.status).toBe(200);
    const leaving = new AbortController();
    const { body, headers } = modernRequest('tools/call', { name: 'far__work', arguments: {} });
    const call = fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    await eventually(
      () => server.newest.looks,
      (looks) => looks > 0 && server.calls.length === 1,
    );
    leaving.abort();
    await call;
    await eventually(
      () => server.cancels,
      (cancels) => cancels.length > 0,
    );
    const [row] = await eventually(
      () =>
        gateway.sql(`select * from a2a_continuations where remote_task_id = $1 and agent_slug = 'far'`, [
          server.cancels[0],
        ]),
      ([found]) => found?.status === 'completed',
    );
    expect((await viewOf(row.task_id)).state).toBe('canceled');
    await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 2_000 });
  });

  it('a question of the server is sent to the client, and its answer is returned unchanged', async () => {
    const taskId = await begin();
    server.look = () => asking();
    const waiting = await seen(taskId);
    expect(waiting).toMatchObject({ status: 'input_required', inputRequests: { 'printer-1': form('printer') } });
    expect((await askAgain(gateway, taskId)).result.structuredContent).toMatchObject({ state: 'input-required' });
    const answer = { action: 'accept', content: { printer: 'lp0' } };
    await post('tasks/update', { taskId, inputResponses: { other: answer }, ...takingTasks });
    expect(server.updates).toEqual([]);
    await post('tasks/update', { taskId, inputResponses: { 'printer-1': answer }, ...takingTasks });
    await eventually(
      () => server.updates,
      (updates) => updates.length > 0,
    );
    // The server may still show an answered question for a while.
    expect((await post('tasks/get', { taskId, ...takingTasks })).result.status).toBe('working');
    server.look = () => asking('tray');
    expect(Object.keys((await seen(taskId)).inputRequests)).toEqual(['tray-1']);
    server.look = () => done;
    await post('tasks/update', { taskId, inputResponses: { 'tray-1': { action: 'decline' } }, ...takingTasks });
    expect(await seen(taskId)).toMatchObject({ status: 'completed', result });
    expect(server.updates.map(({ inputResponses }) => inputResponses)).toEqual([
      { 'printer-1': answer },
      { 'tray-1': { action: 'decline' } },
    ]);
    expect(server.calls).toHaveLength(1);
  });

  it('a client of the 2025 era gets the question while it waits', async () => {
    await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 30_000 });
    const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'legacy' as const } };
    const client = new Client({ name: 'c', version: '1' }, options);
    let asked = 0;
    client.setRequestHandler('elicitation/create', () => {
      asked++;
      return { action: 'accept', content: { printer: 'lp2' } };
    });
    const requestInit = { headers: { authorization: `Bearer ${gateway.token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }));
    const known = { content: [{ type: 'text', text: 'on lp2' }] };
    server.look = () => (server.updates.length === 0 ? asking() : { status: 'completed', result: known });
    expect(await client.callTool({ name: 'far__work', arguments: {} })).toMatchObject(known);
    expect([asked, server.updates.length, server.calls.length]).toEqual([1, 1, 1]);
    expect(server.calls[0]!.declared).toMatchObject({ elicitation: { form: {} }, extensions: { [extension]: {} } });
    expect(server.updates[0].inputResponses).toMatchObject({ 'printer-1': { content: { printer: 'lp2' } } });
    await client.close();
    await gateway.call('PATCH', '/api/mcp/servers/far', { timeoutMs: 2_000 });
  });

  it('is not declared for a client that could not be asked, and a task without a receiver is refused', async () => {
    const capabilities = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
    const asked = await post('tools/call', { name: 'far__work', arguments: {}, _meta: capabilities });
    expect(server.calls.map(({ declared }) => declared)).toEqual([{ elicitation: { form: {} } }]);
    expect(asked.error.code).toBe(-32203);
    const { taskId } = server.newest;
    expect(await gateway.sql('select 1 from a2a_continuations where remote_task_id = $1', [taskId])).toEqual([]);
  });

  it('the door of that one server has the extension when its server has it', async () => {
    const path = '/mcp/servers/far';
    const { result: discovered } = await post('server/discover', {}, path);
    expect(discovered.capabilities.extensions).toEqual({ [extension]: {} });
    const { result: handle } = await post('tools/call', { name: 'work', arguments: {}, ...takingTasks }, path);
    server.look = () => done;
    expect(await seen(handle.taskId, path)).toMatchObject({ status: 'completed', result });
  });

  describe('behind a published agent', () => {
    const send = async (message: object, more: object = {}) =>
      (await rpc(gateway, 'SendMessage', { message, ...more }, { agent: 'worker' })).task;
    const data = (value: object, more: object = {}) => userMessage('', { parts: [{ data: value }], ...more });

    it('is the task of the message', async () => {
      server.look = after(2, done);
      const task = await send(data({ n: 2 }));
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(task.artifacts[0].parts[0]).toEqual({ text: 'printed' });
      expect(task.artifacts[0].parts.at(-1)).toEqual({ data: { pages: 3 } });
      expect(await rowOf(task.id)).toMatchObject({ status: 'completed', agent_slug: 'far' });
      server.look = after(1, {
        status: 'completed',
        result: { content: [{ type: 'text', text: 'no ink' }], isError: true },
      });
      const failed = await send(data({}));
      expect([failed.status.state, failed.status.message.parts[0].text]).toEqual([
        'TASK_STATE_FAILED',
        expect.stringContaining('no ink'),
      ]);
      server.look = after(1, { status: 'failed', error: { code: -32_603, message: 'it broke' } });
      const broken = await send(data({}));
      expect(broken.status.message.parts[0].text).toMatch(/^it broke \[code: remote_task_failed/);
    });

    it('asks the sender, who answers with the next message', async () => {
      server.look = () => asking();
      const asked = await send(data({}));
      expect(asked.status).toMatchObject({
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: { parts: [{ text: 'Which printer?' }], metadata: { kind: 'form' } },
      });
      const wrong = await send(userMessage('', { taskId: asked.id, parts: [{ data: {} }, { data: {} }] }));
      expect(wrong.status).toMatchObject({
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: { parts: [{ text: expect.stringContaining('the message has several') }] },
      });
      expect(server.updates).toEqual([]);
      server.look = () => done;
      const task = await send(data({ printer: 'lp1' }, { taskId: asked.id }));
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(server.updates.map(({ inputResponses }) => inputResponses)).toEqual([
        { 'printer-1': { action: 'accept', content: { printer: 'lp1' } } },
      ]);
      expect(server.calls).toHaveLength(1);
    });

    it('a question that no message can answer ends it', async () => {
      server.look = () => ({ status: 'input_required', inputRequests: { roots: { method: 'roots/list' } } });
      const task = await send(data({}));
      expect([task.status.state, task.status.message.parts[0].text]).toEqual([
        'TASK_STATE_FAILED',
        expect.stringContaining('asks for roots'),
      ]);
      await eventually(
        () => server.cancels,
        (cancels) => cancels.length > 0,
      );
    });

    it('a cancel is sent to the server', async () => {
      const { id } = await send(data({}), { configuration: { returnImmediately: true } });
      await eventually(
        () => rowOf(id),
        (row) => row !== undefined,
      );
      await rpc(gateway, 'CancelTask', { id }, { agent: 'worker' });
      await eventually(
        () => server.cancels,
        (cancels) => cancels.length > 0,
      );
    });
  });
});
