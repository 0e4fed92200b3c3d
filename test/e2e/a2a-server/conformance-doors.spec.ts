import { openStream } from '../../support/clients/a2a.js';
import { CardShape } from '../../support/checks/conformance-shapes.js';
import { bindings, errors, startConformance, tck, type Given } from '../../support/checks/conformance.js';

/*
 * Checks of public kits for the card and the doors: JSON-RPC and HTTP+JSON of v1.0, agents without capabilities, and
 * one that requires an extension.
 */

const wellKnown = '/.well-known/agent-card.json';

interface Sent {
  readonly headers?: Record<string, string>;
  readonly method?: string;
  readonly body?: unknown;
}

const urlOf = ({ card }: Given, binding: string): string =>
  card.supportedInterfaces.find((face: any) => face.protocolBinding === binding).url as string;

async function ask(url: string, { headers = {}, method = 'POST', body }: Sent = {}) {
  const response = await fetch(url, {
    method,
    headers: { 'A2A-Version': '1.0', ...(method === 'POST' && { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const json = (): any => JSON.parse(text) as unknown;
  return { status: response.status, type: response.headers.get('content-type'), headers: response.headers, text, json };
}

const request = (method: string, params?: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params });
const infoOf = (details: any[]): any =>
  details.find((one) => one['@type'] === 'type.googleapis.com/google.rpc.ErrorInfo');

describe('the card of the conformance agent', () => {
  let all: Given;

  beforeAll(async () => void (all = await startConformance('v1')));
  afterAll(() => all.close());

  it('is public, with its members and no others', () => {
    expect(CardShape.parse(all.card)).toEqual(all.card);
    expect(all.card.capabilities).toMatchObject({ streaming: true, pushNotifications: true });
    expect(all.wires.map(({ binding }) => binding)).toEqual([...bindings]);
  });

  it('may be cached, and is not sent again while it is unchanged', async () => {
    const { headers } = await fetch(`${all.gateway.url}${wellKnown}`);
    expect(headers.get('cache-control')).toMatch(/max-age=\d+/);
    expect(Date.parse(headers.get('last-modified')!)).not.toBeNaN();
    const again = await fetch(`${all.gateway.url}${wellKnown}`, { headers: { 'If-None-Match': headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('has signatures that name algorithm and key', () => {
    for (const { protected: header } of all.card.signatures)
      expect(JSON.parse(Buffer.from(header as string, 'base64url').toString())).toMatchObject({
        alg: expect.stringMatching(/.+/),
        kid: expect.stringMatching(/.+/),
      });
  });

  it('RI-46 gives a reply again for its idempotency key, also when a failed task had the key', async () => {
    const send = async (kind: string) => {
      const message = { messageId: `tck-${kind}`, role: 'ROLE_USER', parts: [{ text: 'x' }] };
      const body = request('SendMessage', { message, idempotencyKey: 'one' });
      return (await ask(`${urlOf(all, 'JSONRPC')}/`, { body })).json().result;
    };
    expect((await send('task-failure')).task.status.state).toBe('TASK_STATE_FAILED');
    const [first, second] = [await send('message-response'), await send('message-response')];
    expect(first.message.parts).toEqual([{ text: 'Direct message response' }]);
    expect(second).toEqual(first);
  });
});

describe('JSON-RPC of v1.0', () => {
  let all: Given;
  let url: string;

  beforeAll(async () => {
    all = await startConformance('v1');
    url = urlOf(all, 'JSONRPC');
  });
  afterAll(() => all.close());

  const rpc = async (body: unknown, headers?: Record<string, string>) => ask(`${url}/`, { body, headers });
  const result = async (method: string, params: unknown): Promise<any> => {
    const answer = (await rpc(request(method, params))).json();
    if (answer.error) throw new Error(JSON.stringify(answer.error));
    return answer.result;
  };

  it('answers as JSON, with and without a slash at the end of the url, with the id of the request', async () => {
    for (const at of [url, `${url}/`])
      for (const id of ['tck-1', 7]) {
        const { status, type, json } = await ask(at, { body: request('SendMessage', tck('complete-task'), id) });
        expect([status, type, json().id, json().jsonrpc]).toEqual([200, 'application/json', id, '2.0']);
      }
  });

  it('accepts the names of the protocol buffers too', async () => {
    const context_id = 'tck-snake';
    const { task } = await result('SendMessage', {
      message: { message_id: 'tck-input-required-1', context_id, role: 'ROLE_USER', parts: [{ text: 'x' }] },
      configuration: { return_immediately: false, history_length: 0 },
    });
    expect(task).toMatchObject({ contextId: context_id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } });
    expect(task.history ?? []).toEqual([]);
    const listed = await result('ListTasks', { context_id, page_size: 2, include_artifacts: true });
    expect(listed).toMatchObject({ tasks: [{ id: task.id, artifacts: [] }], pageSize: 2 });
    const config = { task_id: task.id, id: 'tck-push', url: 'https://example.com/hook' };
    expect(await result('CreateTaskPushNotificationConfig', config)).toMatchObject({ taskId: task.id });
    const more = {
      message: {
        message_id: 'tck-complete-task-1',
        task_id: task.id,
        role: 'ROLE_USER',
        parts: [{ text: 'x', media_type: 'text/plain' }],
      },
    };
    expect((await result('SendMessage', more)).task.id).toBe(task.id);
  });

  it.each([
    ['text that is not JSON', '{"jsonrpc": "2.0", "method": "SendMessage", "params": {', -32700, null],
    ['another version of JSON-RPC', { ...request('GetTask', {}), jsonrpc: '1.0' }, -32600, 1],
    ['no method', { jsonrpc: '2.0', id: 'x', params: {} }, -32600, 'x'],
    ['an invalid id', request('GetTask', {}, { bad: 'type' }), -32600, null],
    ['an unknown method', request('NonExistentMethod', {}, '3'), -32601, '3'],
    ['a message without its members', request('SendMessage', { message: { parts: 'invalid' } }), -32602, 1],
    ['unknown params', request('SendMessage', { '': 'not_a_dict' }, '4'), -32602, '4'],
    ['a list of params', request('GetTask', ['x']), -32602, 1],
  ])('refuses %s', async (_what, body, code, id) => {
    const { status, json } = await rpc(body);
    expect([status, json()]).toEqual([200, { jsonrpc: '2.0', id, error: expect.objectContaining({ code }) }]);
  });

  it('describes an error in ErrorInfo', async () => {
    const { error } = (await rpc(request('GetTask', { id: 'tck-nonexistent' }))).json();
    expect(Object.keys(error as object).sort()).toEqual(['code', 'data', 'message']);
    expect(infoOf(error.data as any[])).toMatchObject({ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' });
  });

  it('serves the requested version, with or without patch digits, and no other', async () => {
    const send = request('SendMessage', tck('complete-task'));
    for (const version of ['1.0', '1.0.1'])
      expect((await rpc(send, { 'A2A-Version': version })).json()).toHaveProperty('result.task');
    expect((await rpc(send, { 'A2A-Version': '99.0' })).json().error.code).toBe(-32009);
    const older = (await rpc(request('message/send', {}), { 'A2A-Version': '' })).json();
    expect(older.error).toMatchObject({ code: -32009 });
  });

  it('accepts only JSON, and names another media type as unsupported', async () => {
    const { json } = await rpc(request('SendMessage', tck('complete-task')), { 'Content-Type': 'text/plain' });
    expect(json().error).toMatchObject({ code: -32005, data: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] });
  });

  it('ignores unknown extensions', async () => {
    const extensions = { 'A2A-Extensions': 'https://example.com/ext/v1,https://example.com/ext/v2' };
    const { headers, json } = await rpc(request('SendMessage', tck('complete-task')), extensions);
    expect(json()).toHaveProperty('result.task');
    expect(headers.get('a2a-extensions')).toBeNull();
  });
});

describe('HTTP+JSON of v1.0', () => {
  let all: Given;
  let url: string;

  beforeAll(async () => {
    all = await startConformance('v1');
    url = urlOf(all, 'HTTP+JSON');
  });
  afterAll(() => all.close());

  const rest = (method: string, path: string, sent: Sent = {}) => ask(`${url}${path}`, { method, ...sent });
  const task = async (kind: string): Promise<string> =>
    (await rest('POST', '/message:send', { body: tck(kind) })).json().task.id as string;

  it('cancels by a POST without a body, with any content type', async () => {
    for (const type of ['application/json', 'application/a2a+json']) {
      const { json } = await rest('POST', `/tasks/${await task('input-required')}:cancel`, {
        headers: { 'Content-Type': type },
      });
      expect(json().status.state).toBe('TASK_STATE_CANCELED');
    }
  });

  it.each(['POST', 'GET'])('subscribes by a %s without a body', async (method) => {
    const id = await task('input-required');
    const headers = { 'A2A-Version': '1.0', ...(method === 'POST' && { 'Content-Type': 'application/json' }) };
    const stream = await openStream(`${url}/tasks/${id}:subscribe`, { method, headers });
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect((await stream.next())!.data).toMatchObject({ task: { id } });
    await rest('POST', '/message:send', { body: tck('complete-task', { taskId: id }) });
    const last = (await stream.rest()).at(-1)!;
    expect(last.data).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
  });

  it.each([
    ['application/json', {}, 'application/json'],
    [
      'its own type when the client accepts it',
      { Accept: 'application/a2a+json, application/json' },
      'application/a2a+json',
    ],
    ['its own type when the client sends it', { 'Content-Type': 'application/a2a+json' }, 'application/a2a+json'],
  ])('answers as %s', async (_what, headers, type) => {
    const good = await rest('POST', '/message:send', { headers, body: tck('complete-task') });
    const bad = await rest('POST', '/message:send', { headers, body: {} });
    expect([good.status, good.type, bad.status, bad.type]).toEqual([200, type, 400, type]);
  });

  it('has the status of an error, and describes it in ErrorInfo', async () => {
    const { status, json } = await rest('GET', '/tasks/tck-nonexistent');
    expect(json()).toEqual({
      error: { code: status, status: 'NOT_FOUND', message: expect.any(String), details: expect.any(Array) },
    });
    expect(infoOf(json().error.details as any[])).toMatchObject({
      reason: 'TASK_NOT_FOUND',
      domain: 'a2a-protocol.org',
    });
  });

  it('answers a delete with an empty body, with or without a configuration', async () => {
    const path = `/tasks/${await task('complete-task')}/pushNotificationConfigs/none`;
    const { status, text } = await rest('DELETE', path);
    expect([status, text]).toEqual([204, '']);
  });

  it.each([
    ['an empty message', 'POST', '/message:send', {}, 400],
    ['text that is not JSON', 'POST', '/message:send', '{"message":', 400],
    ['another method', 'GET', '/message:send', undefined, 405],
    ['an unknown path', 'POST', '/message:shout', {}, 404],
    ['an invalid query', 'GET', '/tasks?pageSize=none', undefined, 400],
    ['an unknown state', 'GET', '/tasks?status=TASK_STATE_TIRED', undefined, 400],
  ])('refuses %s', async (_what, method, path, body, status) => {
    const answer = await rest(method, path, { body });
    expect([answer.status, answer.json().error.code]).toEqual([status, status]);
  });

  it('refuses unknown versions and media types', async () => {
    const body = tck('complete-task');
    const version = await rest('POST', '/message:send', { body, headers: { 'A2A-Version': '99.0' } });
    const type = await rest('POST', '/message:send', { body, headers: { 'Content-Type': 'text/plain' } });
    for (const [{ status, json }, reason] of [
      [version, 'VERSION_NOT_SUPPORTED'],
      [type, 'CONTENT_TYPE_NOT_SUPPORTED'],
    ] as const) {
      expect(status).toBe(errors[reason][1]);
      expect(infoOf(json().error.details as any[])).toMatchObject({ reason });
    }
  });
});

describe('an agent that can neither stream nor push', () => {
  let all: Given;

  beforeAll(async () => void (all = await startConformance('nocaps')));
  afterAll(() => all.close());

  it('declares that', () => {
    const { streaming = false, pushNotifications = false, extendedAgentCard = false } = all.card.capabilities;
    expect([streaming, pushNotifications, extendedAgentCard]).toEqual([false, false, false]);
  });

  it('refuses both on every binding, and supports all other operations', async () => {
    for (const [index, wire] of all.wires.entries()) {
      const { value } = await wire.call('SendMessage', tck('complete-task'));
      const taskId = value.task.id as string;
      const push = { taskId, id: 'p', url: 'https://example.com' };
      const refused = [
        [await wire.stream('SendStreamingMessage', tck('stream-001')), 'UNSUPPORTED_OPERATION'],
        [await wire.stream('SubscribeToTask', { id: taskId }), 'UNSUPPORTED_OPERATION'],
        [await wire.call('GetExtendedAgentCard', {}), 'UNSUPPORTED_OPERATION'],
        [await wire.call('CreateTaskPushNotificationConfig', push), 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
        [
          await wire.call('CreateTaskPushNotificationConfig', { ...push, taskId: 'none' }),
          'PUSH_NOTIFICATION_NOT_SUPPORTED',
        ],
        [await wire.call('GetTaskPushNotificationConfig', { taskId, id: 'p' }), 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
        [await wire.call('ListTaskPushNotificationConfigs', { taskId }), 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
        [await wire.call('DeleteTaskPushNotificationConfig', { taskId, id: 'p' }), 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
      ] as const;
      for (const [{ failure }, reason] of refused)
        expect(failure).toMatchObject({ reason, code: errors[reason][index] });
    }
  });
});

describe('an agent that requires an extension', () => {
  const uri = 'urn:a2a:tck:required-extension';
  let all: Given;

  beforeAll(async () => void (all = await startConformance('reqext')));
  afterAll(() => all.close());

  it('declares that', () =>
    expect(all.card.capabilities.extensions).toEqual([expect.objectContaining({ uri, required: true })]));

  it('refuses requests without it, on every binding', async () => {
    for (const [index, wire] of all.wires.entries()) {
      const { failure } = await wire.call('SendMessage', tck('cap-ext-004'));
      const reason = 'EXTENSION_SUPPORT_REQUIRED';
      expect(failure).toMatchObject({ reason, code: errors[reason][index] });
    }
  });

  it('serves requests with it, and declares it as active', async () => {
    const headers = { 'A2A-Extensions': `https://example.com/other, ${uri}` };
    const answers = [
      await ask(`${urlOf(all, 'JSONRPC')}/`, { headers, body: request('SendMessage', tck('complete-task')) }),
      await ask(`${urlOf(all, 'HTTP+JSON')}/message:send`, { headers, body: tck('complete-task') }),
    ];
    for (const answer of answers) {
      expect(answer.text).toContain('TASK_STATE_COMPLETED');
      expect(answer.headers.get('a2a-extensions')).toBe(uri);
    }
  });
});
