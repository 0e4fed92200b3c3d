import { eventually } from '../../support/gateway/eventually.js';
import { publish, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { eventsIn, StrictConnection, type StrictRequest } from '../../support/clients/strict-http.js';

type Request = StrictRequest & { readonly body?: object };
type Fixture = Awaited<ReturnType<typeof startFixture>>;

const said = (text: string) => ({ message: userMessage(text) });
const saidBefore = (text: string, kind: 'kind' | 'type' = 'kind') => ({
  message: { role: 'user', messageId: `m-${Math.random()}`, parts: [{ [kind]: 'text', text }] },
});
const rpc = (path: string, method: string, params: object): Request => ({
  path,
  body: { jsonrpc: '2.0', id: 'call', method, params },
});
const rest = (path: string, body: object): Request => ({ path, body, headers: { 'a2a-version': '1.0' } });

/** Every way to send a message to an agent and read a stream. */
const sends: [name: string, request: (agent: string) => Request][] = [
  ['1.0 JSON-RPC', (agent) => rpc(`/a2a/agents/${agent}`, 'SendStreamingMessage', said('one two three'))],
  ['1.0 JSON-RPC by handle', (agent) => rpc(`/a2a/${agent}`, 'SendStreamingMessage', said('one two three'))],
  ['1.0 REST', (agent) => rest(`/a2a/agents/${agent}/message:stream`, said('one two three'))],
  ['0.3 JSON-RPC', (agent) => rpc(`/a2a/agents/${agent}`, 'message/stream', saidBefore('one two three'))],
  ['0.3 REST', (agent) => ({ path: `/a2a/agents/${agent}/v1/message:stream`, body: saidBefore('one two three') })],
  ['older', (agent) => rpc(`/a2a/agents/${agent}`, 'tasks/sendSubscribe', saidBefore('one two three', 'type'))],
];
const doors = ['/a2a', '/a2a/', '/_agent-native/a2a'];

/** Every way to follow a task. */
const follows: [name: string, request: (id: string, agent?: string) => Request][] = [
  ['1.0 JSON-RPC', (id, agent = 'box') => rpc(`/a2a/agents/${agent}`, 'SubscribeToTask', { id })],
  ['1.0 REST', (id, agent = 'box') => ({ ...rest(`/a2a/agents/${agent}/tasks/${id}:subscribe`, {}), method: 'POST' })],
  [
    '1.0 REST by GET',
    (id, agent = 'box') => ({ path: `/a2a/agents/${agent}/tasks/${id}:subscribe`, headers: { 'a2a-version': '1.0' } }),
  ],
  ['0.3 JSON-RPC', (id, agent = 'box') => rpc(`/a2a/agents/${agent}`, 'tasks/resubscribe', { id })],
  [
    '0.3 REST',
    (id, agent = 'box') => ({ path: `/a2a/agents/${agent}/v1/tasks/${id}:subscribe`, method: 'POST', body: {} }),
  ],
  ['older', (id, agent = 'box') => rpc(`/a2a/agents/${agent}`, 'tasks/subscribe', { id })],
  ['run events', (id) => ({ path: `/a2a/tasks/${id}/events` })],
];

describe('every stream is complete on the wire, and the next answer follows it (T1)', () => {
  let gateway: TestGateway;
  let fixture: Fixture;
  const connections: StrictConnection[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'chunked', executor: { kind: 'echo', chunks: 3 } });
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', chunks: 3, delayMs: 600 } });
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
    await publish(gateway, { name: 'sleepy', executor: { kind: 'echo', chunks: 2, delayMs: 600_000 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which one?' } });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'chunked' });
    fixture = await startFixture('legacy');
    await gateway.call('POST', '/api/mcp/servers', { id: 'fix', url: fixture.url });
  });
  afterEach(() => connections.splice(0).forEach((connection) => connection.destroy()));
  afterAll(async () => {
    await gateway.close();
    await fixture.close();
  });

  const open = async (url = gateway.url): Promise<StrictConnection> => {
    const connection = await StrictConnection.open(url);
    connections.push(connection);
    return connection;
  };
  const asAdmin = (request: Request): Request => ({
    ...request,
    headers: { authorization: `Bearer ${gateway.token}`, ...request.headers },
  });
  const next = async (connection: StrictConnection): Promise<void> => {
    expect((await connection.exchange({ path: '/livez' })).status).toBe(200);
  };
  /** Reads the events of a stream, and checks that the next answer follows it. */
  const streamOf = async (connection: StrictConnection, request: Request): Promise<any[]> => {
    const { status, headers, body } = await connection.exchange(asAdmin(request));
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
    await next(connection);
    return eventsIn(body);
  };
  const isComplete = (events: any[]): boolean => /completed/i.test(JSON.stringify(events.at(-1)));
  /** Reads chunks of an open stream until a text arrives. */
  const readUntil = async (connection: StrictConnection, text: string): Promise<string> => {
    let all = '';
    while (!all.includes(text)) all += (await connection.chunk())!.toString('utf8');
    return all;
  };
  const rest = async (connection: StrictConnection): Promise<string> => {
    let all = '';
    for (let chunk = await connection.chunk(); chunk; chunk = await connection.chunk()) all += chunk.toString('utf8');
    return all;
  };
  /** Creates a task that works until the test ends it. */
  const running = async () => {
    const sent = rpcBody('SendMessage', { ...said('a b c'), ...immediately });
    const { id } = (await gateway.call('POST', '/a2a/agents/box', sent)).body.result.task;
    const { body: held } = await gateway.call('POST', '/api/mailbox/box/lease?waitMs=30000');
    expect(held.task.id).toBe(id);
    const complete = { id: 'c', type: 'complete', text: 'a b c', leaseEpoch: held.leaseEpoch };
    return { id, end: () => gateway.call('POST', `/api/executions/${id}/events`, complete, held.token) };
  };
  const rpcBody = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
  const immediately = { configuration: { returnImmediately: true } };

  describe.each(['echo', 'chunked', 'slow'])('a message to the agent %s', (agent) => {
    it.each(sends)('%s', async (_, request) => {
      const connection = await open();
      for (let round = 0; round < 3; round++) {
        const events = await streamOf(connection, request(agent));
        expect(events.length).toBeGreaterThanOrEqual(agent === 'echo' ? 3 : 5);
        expect(isComplete(events)).toBe(true);
      }
      await connection.finish();
    });
  });

  it.each(doors)('a message to the default agent at %s', async (path) => {
    const events = await streamOf(await open(), rpc(path, 'message/stream', saidBefore('one two three')));
    expect(isComplete(events)).toBe(true);
  });

  it.each(sends)('a question ends its stream: %s', async (_, request) => {
    const events = await streamOf(await open(), request('asks'));
    expect(JSON.stringify(events.at(-1))).toMatch(/input.required/i);
  });

  it.each(follows)('a running task is followed to its end, and replayed: %s', async (name, request) => {
    const { id, end } = await running();
    const connection = await open();
    connection.send(asAdmin(request(id)));
    const { status, headers } = await connection.head();
    expect([status, headers['content-type']]).toEqual([200, 'text/event-stream']);
    const begun = await readUntil(connection, '\n\n');
    expect((await end()).status).toBe(200);
    const events = eventsIn(begun + (await rest(connection)));
    await next(connection);
    if (name === 'run events') expect(JSON.stringify(events)).toContain('completed');
    else expect(isComplete(events)).toBe(true);
    const replay = { ...request(id), headers: { ...request(id).headers, 'last-event-id': '1' } };
    expect(JSON.stringify(await streamOf(connection, replay))).toMatch(/completed/i);
    await connection.finish();
  });

  it('twenty streams in one write are answered in order, each complete', async () => {
    const connection = await open();
    const requests = Array.from({ length: 20 }, (_, index) => sends[index % sends.length]!);
    for (const [index, [, request]] of requests.entries())
      connection.send(asAdmin(request(index % 5 === 0 ? 'slow' : 'chunked')));
    for (let count = 0; count < requests.length; count++) {
      const { body } = await connection.response('POST');
      expect(isComplete(eventsIn(body))).toBe(true);
    }
    await connection.finish();
  });

  it('a client of HTTP/1.0 reads it until the connection ends', async () => {
    const connection = await open();
    connection.send({ ...asAdmin(sends[0]![1]('chunked')), version: '1.0' });
    const { body, headers } = await connection.response('POST');
    expect(isComplete(eventsIn(body))).toBe(true);
    expect(headers['transfer-encoding']).toBeUndefined();
    await connection.ended();
  });

  it('a canceled task ends the streams that follow it', async () => {
    const { id } = await running();
    const connection = await open();
    connection.send(asAdmin(follows[0]![1](id)));
    await connection.head();
    await gateway.call('POST', `/a2a/tasks/${id}/cancel`);
    expect(await rest(connection)).toContain('TASK_STATE_CANCELED');
    await next(connection);
  });

  it('a revoked credential ends its stream, which stays complete', async () => {
    const key = (await gateway.call('POST', '/api/keys', { name: 'brief', role: 'member' })).body;
    const connection = await open();
    const request = sends[0]![1]('sleepy');
    connection.send({ ...request, headers: { ...request.headers, authorization: `Bearer ${key.key}` } });
    await connection.head();
    const begun = await readUntil(connection, 'TASK_STATE_WORKING');
    await gateway.call('DELETE', `/api/keys/${key.id}`);
    expect(eventsIn(begun + (await rest(connection))).length).toBeGreaterThan(0);
    await next(connection);
  });

  it('a client that leaves in the middle stops nothing: its task ends, and others are served', async () => {
    const connection = await open();
    connection.send(asAdmin(sends[0]![1]('slow')));
    await connection.head();
    const { taskId } = eventsIn(await readUntil(connection, '\n\n')).map(({ result }) => ({
      taskId: result.task?.id ?? result.statusUpdate?.taskId,
    }))[0]!;
    connection.destroy();
    await eventually(
      async () => (await gateway.call('GET', `/a2a/tasks/${taskId}`)).body.status,
      (status) => status === 'completed',
    );
    expect(isComplete(await streamOf(await open(), sends[0]![1]('chunked')))).toBe(true);
    expect(gateway.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });

  describe('MCP', () => {
    const initialize = async (capabilities: object = {}) => {
      const clientInfo = { name: 'raw', version: '1' };
      const params = { protocolVersion: '2025-11-25', capabilities, clientInfo };
      const { headers } = await gateway.call('POST', '/mcp', rpcBody('initialize', params));
      const session = headers.get('mcp-session-id')!;
      return { 'mcp-session-id': session, accept: 'application/json, text/event-stream' };
    };
    const call = (name: string, args: object, progressToken?: string) => ({
      name,
      arguments: args,
      ...(progressToken && { _meta: { progressToken } }),
    });
    const progress = call('fix__test_tool_with_progress', {}, 'p');

    it('progress and the answer come in one stream: 2025 era', async () => {
      const connection = await open();
      const headers = await initialize();
      const events = await streamOf(connection, { ...rpc('/mcp', 'tools/call', progress), headers });
      expect(events.length).toBeGreaterThan(2);
      expect(events.at(-1)).toMatchObject({ id: 'call', result: {} });
    });

    it('progress and the answer come in one stream: 2026-07-28', async () => {
      const { headers, body } = modernRequest('tools/call', progress, 'call');
      const events = await streamOf(await open(), { path: '/mcp', headers, body });
      expect(events.length).toBeGreaterThan(2);
      expect(events.at(-1)).toMatchObject({ id: 'call', result: {} });
    });

    it('a client that prefers streams reads its answer in one: both eras', async () => {
      const accept = 'text/event-stream';
      const legacy = { ...rpc('/mcp', 'tools/list', {}), headers: { ...(await initialize()), accept } };
      const modern = modernRequest('tools/list', {}, 'call');
      const connection = await open();
      for (const request of [legacy, { path: '/mcp', ...modern, headers: { ...modern.headers, accept } }])
        expect(await streamOf(connection, request)).toMatchObject([{ id: 'call', result: {} }]);
    });

    it('a question of a server to the client is sent before the answer', async () => {
      const headers = await initialize({ sampling: {} });
      const connection = await open();
      const request = rpc('/mcp', 'tools/call', call('fix__test_sampling', { prompt: 'capital?' }));
      connection.send(asAdmin({ ...request, headers }));
      await connection.head();
      const asked = eventsIn(await readUntil(connection, 'sampling/createMessage')).at(-1);
      const result = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };
      const answer = { jsonrpc: '2.0', id: asked.id, result };
      expect((await gateway.call('POST', '/mcp', answer, gateway.token, headers)).status).toBe(202);
      expect(eventsIn(await rest(connection)).at(-1)).toMatchObject({ id: 'call', result: {} });
      await next(connection);
    });

    it('the standing stream of a session ends completely with its session', async () => {
      const headers = { ...(await initialize()), accept: 'text/event-stream' };
      const connection = await open();
      connection.send(asAdmin({ path: '/mcp', headers }));
      await connection.head();
      await readUntil(connection, ': open');
      await gateway.call('POST', '/api/a2a/published', { ...named('later'), executor: { kind: 'echo' } });
      const { 'mcp-session-id': session } = headers;
      expect(
        (await gateway.call('DELETE', '/mcp', undefined, gateway.token, { 'mcp-session-id': session })).status,
      ).toBe(204);
      await rest(connection);
      await next(connection);
    });

    it('a subscription of 2026-07-28 ends completely with its credential', async () => {
      const { key, id } = (await gateway.call('POST', '/api/keys', { name: 'listener', role: 'member' })).body;
      const request = modernRequest('subscriptions/listen', { notifications: { toolsListChanged: true } }, 'sub');
      const connection = await open();
      connection.send({
        path: '/mcp',
        body: request.body,
        headers: { ...request.headers, authorization: `Bearer ${key}` },
      });
      await connection.head();
      await readUntil(connection, 'data:');
      await gateway.call('DELETE', `/api/keys/${id}`);
      await rest(connection);
      await next(connection);
    });
  });

  it('a stopping process ends every stream after its last event, with a retry time', async () => {
    const { child, ready, ended } = gateway.beside({ RIALTO_ROLE: 'api' });
    const url = await ready;
    const { body } = await gateway.call(
      'POST',
      '/a2a/agents/sleepy',
      rpcBody('SendMessage', { ...said('a b'), ...immediately }),
    );
    const followed = follows.map(([, request]) => request(body.result.task.id, 'sleepy'));
    const all = await Promise.all(
      followed.map(async (request) => {
        const connection = await open(url);
        connection.send(asAdmin(request));
        await connection.head();
        return { connection, begun: await readUntil(connection, '\n\n') };
      }),
    );
    child.kill('SIGTERM');
    for (const { connection, begun } of all) {
      expect(begun + (await rest(connection))).toMatch(/\n\nretry: \d+\n\n$/);
      await connection.ended();
    }
    expect((await ended).code).toBe(0);
  });
});

function named(name: string): object {
  return { name, description: 'Repeats the message.', a2a_enabled: true };
}
