import { startConformance, type Given } from '../../support/checks/conformance.js';
import { openStream } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startWebhookSink } from '../../support/stubs/webhook-sink.js';

/* Checks of a kit of v0.3: JSON-RPC at the url of the card, and HTTP+JSON below `/v1`. */

const say = (kind: string, more: object = {}, parts: object[] = [{ kind: 'text', text: 'Hello from TCK!' }]) => ({
  message: { kind: 'message', messageId: `${kind}-1`, role: 'user', parts, ...more },
});

describe('v0.3', () => {
  let all: Given;
  let url: string;

  beforeAll(async () => {
    all = await startConformance('v03');
    url = all.card.url as string;
  });
  afterAll(() => all.close());

  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: text,
    });
    return { status: response.status, body: (await response.json()) as any };
  };
  const ask = async (method: string, params: unknown) =>
    (await post({ jsonrpc: '2.0', id: 'tck-1', method, params })).body;
  const rpc = async (method: string, params: unknown): Promise<any> => {
    const { error, result } = await ask(method, params);
    if (error) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  };
  const codeOf = async (method: string, params: unknown): Promise<number> =>
    (await ask(method, params)).error?.code as number;
  const send = (...args: Parameters<typeof say>): Promise<any> => rpc('message/send', say(...args));
  const stream = async (method: string, params: unknown) =>
    openStream(url, { body: { jsonrpc: '2.0', id: 'tck-1', method, params } });

  it('is on the card, which has members of v0.3 only, and all required ones', () => {
    expect(all.card).toMatchObject({
      protocolVersion: expect.stringMatching(/^0\.3/),
      preferredTransport: 'JSONRPC',
      capabilities: { streaming: true, pushNotifications: true },
      skills: [
        {
          id: expect.any(String),
          name: expect.any(String),
          description: expect.any(String),
          tags: [expect.any(String)],
        },
      ],
    });
    for (const name of ['name', 'description', 'version', 'url', 'defaultInputModes', 'defaultOutputModes'])
      expect(all.card[name]).toBeTruthy();
    expect(all.card.additionalInterfaces).toContainEqual({ url, transport: 'JSONRPC' });
  });

  it('answers with a bare task, which can be continued', async () => {
    const task = await send('test-text-message-id');
    expect(task).toMatchObject({
      kind: 'task',
      status: { state: 'input-required' },
      history: [{ kind: 'message', role: 'user' }],
    });
    for (let turn = 2; turn <= 4; turn++)
      expect(await send(`test-continuation-message-id-${turn}`, { taskId: task.id })).toMatchObject({ id: task.id });
    const long = await rpc('tasks/get', { id: task.id });
    const short = await rpc('tasks/get', { id: task.id, historyLength: 2 });
    expect([long.history.length > 2, short.history.length]).toEqual([true, 2]);
  });

  it('answers with a bare message', async () =>
    expect(await send('tck-message-response')).toMatchObject({
      kind: 'message',
      role: 'agent',
      parts: [{ kind: 'text' }],
    }));

  it.each([
    ['text', { kind: 'text', text: 'x' }],
    ['file', { kind: 'file', file: { name: 'test.txt', mimeType: 'text/plain', uri: 'https://example.com/test.txt' } }],
    ['bytes', { kind: 'file', file: { name: 'test.txt', mimeType: 'text/plain', bytes: 'dGVzdA==' } }],
    ['data', { kind: 'data', data: { key: 'value', nested: { array: [1, 2, 3] } } }],
  ])('accepts parts: %s', async (_kind, part) => {
    const { history } = await send('test-part-message-id', {}, [part]);
    expect(history[0].parts).toEqual([part]);
  });

  it('cancels, and reports unknown tasks', async () => {
    const { id } = await send('test-cancel-test-message-id');
    expect(await rpc('tasks/cancel', { id })).toMatchObject({ kind: 'task', id, status: { state: 'canceled' } });
    for (const method of ['tasks/get', 'tasks/cancel', 'tasks/pushNotificationConfig/list'])
      expect(await codeOf(method, { id: 'nonexistent-task-id' })).toBe(-32001);
    const over = await send('tck-complete-task');
    expect(await codeOf('tasks/cancel', { id: over.id })).toBe(-32002);
    // (K7) In 0.3 a canceled task is not cancelable; in 1.0 a second cancel changes nothing.
    expect(await codeOf('tasks/cancel', { id })).toBe(-32002);
    expect(await codeOf('message/send', say('x', { taskId: over.id }))).toBe(-32004);
  });

  it('streams events with their kinds; the last one is final', async () => {
    const events = await (await stream('message/stream', say('tck-stream-001'))).rest();
    const results = events.map(({ data }) => data.result as { kind: string; final?: boolean });
    expect(results.map(({ kind }) => kind)).toEqual(['task', 'status-update', 'artifact-update', 'status-update']);
    expect(results.flatMap(({ final }) => final ?? [])).toEqual([false, true]);
    expect(results.at(-1)).toMatchObject({ status: { state: 'completed' } });
    expect(await codeOf('message/stream', { invalid: 'params' })).toBe(-32602);
  });

  it('streams again to a client that resubscribes', async () => {
    const first = await stream('message/stream', say('test-resubscribe-message-id'));
    const { id } = (await first.next())!.data.result as { id: string };
    const again = await stream('tasks/resubscribe', { id });
    expect((await again.next())!.data.result).toMatchObject({ kind: 'task', id });
    for (const one of [first, again])
      expect((await one.rest()).at(-1)!.data.result).toMatchObject({ kind: 'status-update', final: true });
    const none = await stream('tasks/resubscribe', { id: 'non-existent-task-id' });
    expect(none.headers.get('content-type')).toContain('event-stream'); // (K3)
    none.close();
  });

  it('stores push configurations, and posts to them', async () => {
    const sink = await startWebhookSink();
    const { id } = await send('test-push-notification-message-id');
    const pushNotificationConfig = { id: 'tck-1', url: sink.url.replace('127.0.0.1', 'localhost'), token: 'tck-token' };
    const set = await rpc('tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig });
    expect(set).toMatchObject({ taskId: id, pushNotificationConfig: { id: 'tck-1', url: pushNotificationConfig.url } });
    const one = { id, pushNotificationConfigId: 'tck-1' };
    expect(await rpc('tasks/pushNotificationConfig/get', one)).toEqual(set);
    expect(await rpc('tasks/pushNotificationConfig/list', { id })).toEqual([set]);
    await send('tck-complete-task', { taskId: id });
    const [{ headers }] = (await eventually(
      () => sink.received,
      ({ length }) => length > 0,
    )) as [(typeof sink.received)[number]];
    expect(headers['x-a2a-notification-token']).toBe('tck-token');
    for (let times = 0; times < 2; times++) expect(await rpc('tasks/pushNotificationConfig/delete', one)).toBeNull();
    expect(await codeOf('tasks/pushNotificationConfig/get', one)).toBe(-32001);
    const nowhere = { taskId: 'nonexistent-task-id', pushNotificationConfig };
    expect(await codeOf('tasks/pushNotificationConfig/set', nowhere)).toBe(-32001);
    await sink.close();
  });

  it('has one push configuration without a name', async () => {
    const { id } = await send('test-push-notification-message-id');
    expect(await rpc('tasks/pushNotificationConfig/list', { id })).toEqual([]);
    const url = 'https://example.com/webhook';
    await rpc('tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig: { url } });
    const got = await rpc('tasks/pushNotificationConfig/get', { id });
    expect(got).toMatchObject({ taskId: id, pushNotificationConfig: { url } });
  });

  // Without an id these would be notifications, but the kits send them so and expect an error.
  it.each([
    ['text that is not JSON', '{"jsonrpc": "2.0", "method": "message/send", "params": {"foo": "bar"}', -32700],
    ['another version of JSON-RPC', { jsonrpc: 'aaa', method: 'message/send', params: {} }, -32600],
    ['no method', { jsonrpc: '2.0', params: {} }, -32600],
    ['an unknown method', { jsonrpc: '2.0', method: 'message/ssend', params: {} }, -32601],
    ['an invalid id', { jsonrpc: '2.0', id: { bad: 'type' }, method: 'message/send', params: {} }, -32600],
    ['unknown params', { jsonrpc: '2.0', method: 'message/send', params: { '': 'not_a_dict' } }, -32602],
    [
      'a message without its members',
      { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message: { kind: 'message' } } },
      -32602,
    ],
  ])('refuses %s, with HTTP 200', async (_what, body, code) => {
    const answer = await post(body);
    expect([answer.status, answer.body.error.code]).toEqual([200, code]);
  });

  it('declares no extended card, and refuses to send one', async () => {
    expect(all.card.supportsAuthenticatedExtendedCard ?? false).toBe(false);
    expect([-32004, -32007]).toContain(await codeOf('agent/getAuthenticatedExtendedCard', {}));
  });

  it('supports HTTP+JSON too, with the names of JSON and of the protocol buffers', async () => {
    const rest = async (method: string, path: string, body?: object) => {
      const headers = { 'Content-Type': 'application/json' };
      const response = await fetch(`${url}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
      const text = await response.text();
      return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
    };
    const proto = { message: { messageId: 'tck-input-required-1', role: 'ROLE_USER', content: [{ text: 'x' }] } };
    for (const message of [proto, say('tck-input-required')]) {
      const { status, body } = await rest('POST', '/message:send', message);
      expect([status, body.task.status.state]).toEqual([200, 'TASK_STATE_INPUT_REQUIRED']);
      const path = `/tasks/${body.task.id}`;
      expect((await rest('GET', path)).body.id).toBe(body.task.id);
      expect((await rest('POST', `${path}:cancel`)).body.status.state).toMatch(/^TASK_STATE_CANCELL?ED$/);
    }
    expect((await rest('GET', '/tasks/nonexistent-task-id')).status).toBe(404);
  });
});
