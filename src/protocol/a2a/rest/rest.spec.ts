import type { Json, JsonObject } from '../../../kernel/json.js';
import type { A2aVersion, Message, StreamResponse, Task } from '../model.js';
import type { Operation } from '../request/operations.js';
import { decodeRest, encodeRestEvent, encodeRestResult, matchRest, type RestMatch } from './rest.js';

function match(method: string, path: string): RestMatch {
  const found = matchRest(method, path);
  if (!found || 'allow' in found) throw new Error(`no match: ${method} ${path}`);
  return found;
}

function decode(method: string, url: string, body?: Json) {
  const [path = '', query = ''] = url.split('?');
  return decodeRest(match(method, path), new URLSearchParams(query), body, { newId: () => 'made' });
}

function operation(method: string, url: string, body?: Json): Operation {
  const result = decode(method, url, body);
  if (!result.ok) throw new Error(result.message);
  return result.operation;
}

function refused(method: string, url: string, body?: Json): string[] {
  const result = decode(method, url, body);
  if (result.ok) throw new Error('not refused');
  return (result.violations ?? []).map(({ field }) => field);
}

describe('matchRest', () => {
  it.each<[string, string, A2aVersion, string, Record<string, string>]>([
    ['POST', '/message:send', '1.0', 'SendMessage', {}],
    ['POST', '/message%3Asend', '1.0', 'SendMessage', {}],
    ['POST', '/message:stream', '1.0', 'SendStreamingMessage', {}],
    ['GET', '/tasks', '1.0', 'ListTasks', {}],
    ['GET', '/tasks/', '1.0', 'ListTasks', {}],
    ['GET', '/tasks/t1', '1.0', 'GetTask', { id: 't1' }],
    ['GET', '/tasks/tasks', '1.0', 'GetTask', { id: 'tasks' }],
    ['GET', '/tasks/a%2Fb%20%C3%BC', '1.0', 'GetTask', { id: 'a/b ü' }],
    ['GET', '/tasks/a%3Acancel', '1.0', 'GetTask', { id: 'a:cancel' }],
    ['POST', '/tasks/t1:cancel', '1.0', 'CancelTask', { id: 't1' }],
    ['POST', '/tasks/a:b:cancel', '1.0', 'CancelTask', { id: 'a:b' }],
    ['POST', '/tasks/t1:subscribe', '1.0', 'SubscribeToTask', { id: 't1' }],
    ['GET', '/tasks/t1:subscribe', '1.0', 'SubscribeToTask', { id: 't1' }],
    ['POST', '/tasks/t1/pushNotificationConfigs', '1.0', 'CreateTaskPushNotificationConfig', { taskId: 't1' }],
    ['GET', '/tasks/t1/pushNotificationConfigs', '1.0', 'ListTaskPushNotificationConfigs', { taskId: 't1' }],
    ['GET', '/tasks/t1/pushNotificationConfigs/p', '1.0', 'GetTaskPushNotificationConfig', { taskId: 't1', id: 'p' }],
    [
      'DELETE',
      '/tasks/t/pushNotificationConfigs/p',
      '1.0',
      'DeleteTaskPushNotificationConfig',
      { taskId: 't', id: 'p' },
    ],
    ['GET', '/extendedAgentCard', '1.0', 'GetExtendedAgentCard', {}],
    ['POST', '/v1/message:send', '0.3', 'SendMessage', {}],
    ['POST', '/v1/message:stream', '0.3', 'SendStreamingMessage', {}],
    ['GET', '/v1/tasks', '0.3', 'ListTasks', {}],
    ['GET', '/v1/tasks/t1', '0.3', 'GetTask', { id: 't1' }],
    ['POST', '/v1/tasks/t1:cancel', '0.3', 'CancelTask', { id: 't1' }],
    ['GET', '/v1/tasks/t1:subscribe', '0.3', 'SubscribeToTask', { id: 't1' }],
    ['POST', '/v1/tasks/t1:subscribe', '0.3', 'SubscribeToTask', { id: 't1' }],
    ['GET', '/v1/tasks/t1/pushNotificationConfigs', '0.3', 'ListTaskPushNotificationConfigs', { taskId: 't1' }],
    ['GET', '/v1/card', '0.3', 'GetExtendedAgentCard', {}],
  ])('%s %s is v%s %s', (method, path, version, name, params) => {
    expect(match(method, path)).toMatchObject({ version, name, params });
    expect(match(method, path)).not.toHaveProperty('tenant');
  });

  it('returns streams and success codes', () => {
    expect(match('POST', '/message:stream')).toMatchObject({ stream: true, successStatus: 200 });
    expect(match('GET', '/v1/tasks/t:subscribe')).toMatchObject({ stream: true, successStatus: 200 });
    expect(match('POST', '/message:send')).toMatchObject({ stream: false, successStatus: 200 });
    expect(match('POST', '/tasks/t/pushNotificationConfigs')).toMatchObject({ successStatus: 201 });
    expect(match('DELETE', '/tasks/t/pushNotificationConfigs/p')).toMatchObject({ successStatus: 204 });
  });

  it('reads a tenant at the start of the path', () => {
    expect(match('POST', '/tenant-x/message:send')).toMatchObject({ name: 'SendMessage', tenant: 'tenant-x' });
    expect(match('GET', '/a%2Fb/tasks/t1')).toMatchObject({ name: 'GetTask', params: { id: 't1' }, tenant: 'a/b' });
    expect(match('GET', '/x/extendedAgentCard')).toMatchObject({ tenant: 'x' });
  });

  it.each([
    ['GET', '/message:send', ['POST']],
    ['GET', '/tasks/t1:cancel', ['POST']],
    ['PUT', '/tasks/t1:subscribe', ['POST', 'GET']],
    ['DELETE', '/tasks/t1', ['GET']],
    ['PATCH', '/tasks/t1/pushNotificationConfigs', ['POST', 'GET']],
    ['POST', '/v1/card', ['GET']],
    ['toString', '/tasks', ['GET']],
  ])('%s %s is not allowed', (method, path, allow) => expect(matchRest(method, path)).toEqual({ allow }));

  it.each([
    '',
    '/',
    '/nothing',
    '/tasks//x',
    '/tasks/t/x',
    '//message:send',
    '/v1',
    '/v1/extendedAgentCard',
    '/x/v1/tasks',
    '/v1/tenant/tasks',
    '/tasks/%E0%A4%A',
    '/%zz/tasks',
    '/tasks/t1/pushNotificationConfigs/p/x',
  ])('does not know %p', (path) => expect(matchRest('GET', path)).toBeUndefined());
});

const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'x' }] };

describe('decodeRest of v1.0', () => {
  it('joins path and body', () => {
    expect(operation('POST', '/message:send', { message })).toEqual({ name: 'SendMessage', params: { message } });
    expect(decode('POST', '/acme/message:send', { message, tenant: 'other' })).toMatchObject({ tenant: 'acme' });
    expect(decode('POST', '/message:send', { message, tenant: 'acme' })).toMatchObject({ tenant: 'acme' });
    expect(operation('POST', '/tasks/t1:cancel', { metadata: { a: 1 }, id: 't2' })).toEqual({
      name: 'CancelTask',
      params: { id: 't1', metadata: { a: 1 } },
    });
    expect(operation('POST', '/tasks/t1/pushNotificationConfigs', { task_id: 't2', url: 'u', id: 'p' })).toEqual({
      name: 'CreateTaskPushNotificationConfig',
      params: { taskId: 't1', id: 'p', url: 'u', format: 'v1' },
    });
  });

  it('needs no body when the operation has no members', () => {
    expect(operation('POST', '/tasks/t1:cancel').params).toEqual({ id: 't1' });
    expect(operation('POST', '/tasks/t1:subscribe').params).toEqual({ id: 't1' });
    expect(operation('GET', '/tasks/t1:subscribe').params).toEqual({ id: 't1' });
    expect(refused('POST', '/message:send')).toEqual(['message']);
  });

  it.each([[[]], ['x'], [null], [7]])('refuses the body %p', (body) =>
    expect(refused('POST', '/message:send', body)).toEqual(body === null ? ['message'] : ['body']),
  );

  it('reads queries in camelCase or snake_case', () => {
    const filters =
      'status=TASK_STATE_WORKING&pageSize=1&includeArtifacts=true&statusTimestampAfter=2026-01-01T00:00:00Z';
    expect(operation('GET', `/tasks?${filters}&context_id=c%201&history_length=0&pageToken=`).params).toEqual({
      contextId: 'c 1',
      status: 'TASK_STATE_WORKING',
      pageSize: 1,
      historyLength: 0,
      statusTimestampAfter: Date.UTC(2026, 0, 1),
      includeArtifacts: true,
    });
    expect(operation('GET', '/tasks/t1?historyLength=2&id=t2&other=1').params).toEqual({ id: 't1', historyLength: 2 });
    expect(operation('GET', '/tasks?pageSize=2&pageSize=3').params).toMatchObject({ pageSize: 3 });
    expect(decode('GET', '/tasks/t1?tenant=acme')).toMatchObject({ tenant: 'acme' });
  });

  it.each([
    ['historyLength=-1', 'historyLength'],
    ['historyLength=1.5', 'historyLength'],
    ['historyLength=ten', 'historyLength'],
    ['pageSize=0', 'pageSize'],
    ['pageSize=1e2', 'pageSize'],
    ['includeArtifacts=1', 'includeArtifacts'],
    ['includeArtifacts=TRUE', 'includeArtifacts'],
    ['status=working', 'status'],
    ['statusTimestampAfter=now', 'statusTimestampAfter'],
    ['contextId=%00', 'contextId'],
  ])('refuses ?%s', (query, field) => expect(refused('GET', `/tasks?${query}`)).toEqual([field]));

  it('refuses an id that cannot be stored', () => expect(refused('GET', '/tasks/a%00')).toEqual(['id']));
});

describe('decodeRest of v0.3', () => {
  const proto = { messageId: 'm1', role: 'ROLE_USER', content: [{ text: 'x' }] };
  const plain = { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'x' }] };

  it.each<[string, JsonObject]>([
    ['proto', { message: proto }],
    ['proto with the name of the field', { request: proto }],
    ['kind', { message: plain }],
    ['snake_case', { message: { message_id: 'm1', role: 'ROLE_USER', content: [{ text: 'x' }] } }],
  ])('reads a message in %s style', (_style, body) =>
    expect(operation('POST', '/v1/message:send', body)).toEqual({ name: 'SendMessage', params: { message } }),
  );

  it('reads both names of the push configuration', () => {
    const config = { url: 'u', token: 't', authentication: { schemes: ['Bearer'] } };
    for (const name of ['pushNotification', 'push_notification', 'pushNotificationConfig']) {
      const { params } = operation('POST', '/v1/message:send', { message: plain, configuration: { [name]: config } });
      expect(params).toMatchObject({ pushConfig: { url: 'u', authentication: { scheme: 'Bearer' }, format: 'v0.3' } });
    }
  });

  const created = {
    name: 'CreateTaskPushNotificationConfig',
    params: { taskId: 't1', id: 'p1', url: 'u', format: 'v0.3' },
  };
  it.each<[string, JsonObject]>([
    [
      'as the official SDK posts it',
      { name: 'tasks/t1/pushNotificationConfigs/p1', pushNotificationConfig: { id: 'p1', url: 'u' } },
    ],
    ['in the form of JSON-RPC', { taskId: 't1', pushNotificationConfig: { id: 'p1', url: 'u' } }],
    [
      'in the form of the proto',
      { parent: 'tasks/t1', configId: 'p1', config: { pushNotificationConfig: { url: 'u' } } },
    ],
    ['in snake_case', { config_id: 'p1', config: { push_notification_config: { url: 'u' } } }],
    ['flat', { id: 'p1', url: 'u' }],
  ])('creates a push configuration %s', (_how, body) =>
    expect(operation('POST', '/v1/tasks/t1/pushNotificationConfigs', body)).toEqual(created),
  );

  it('reads the other parameters from the path', () => {
    expect(operation('GET', '/v1/tasks/t1?history_length=1').params).toEqual({ id: 't1', historyLength: 1 });
    expect(operation('POST', '/v1/tasks/t1:cancel').params).toEqual({ id: 't1' });
    expect(operation('GET', '/v1/tasks/t1:subscribe').params).toEqual({ id: 't1' });
    expect(operation('GET', '/v1/tasks/t1/pushNotificationConfigs').params).toEqual({ taskId: 't1' });
    expect(operation('GET', '/v1/tasks/t1/pushNotificationConfigs/p1').params).toEqual({ taskId: 't1', id: 'p1' });
    expect(operation('DELETE', '/v1/tasks/t1/pushNotificationConfigs/p1').params).toEqual({ taskId: 't1', id: 'p1' });
    expect(operation('GET', '/v1/tasks?pageSize=5').params).toEqual({ pageSize: 5, includeArtifacts: false });
    expect(operation('GET', '/v1/card')).toEqual({ name: 'GetExtendedAgentCard', params: {} });
  });
});

const answer: Message = {
  messageId: 'm2',
  role: 'ROLE_AGENT',
  parts: [{ data: { a: 1 } }, { data: [1] }, { text: 'x' }],
};
const task: Task = {
  id: 't1',
  contextId: 'c1',
  status: { state: 'TASK_STATE_CANCELED', message: answer },
  artifacts: [{ artifactId: 'a1', parts: [{ raw: 'aGk=', filename: 'n', mediaType: 'a/b' }, { url: 'u' }] }],
  history: [],
};
const protoMessage: JsonObject = {
  messageId: 'm2',
  role: 'ROLE_AGENT',
  content: [
    { data: { data: { a: 1 } } },
    { data: { data: { value: [1] } }, metadata: { data_part_compat: true } },
    { text: 'x' },
  ],
};
const protoTask: JsonObject = {
  id: 't1',
  contextId: 'c1',
  status: { state: 'TASK_STATE_CANCELLED', message: protoMessage },
  artifacts: [
    {
      artifactId: 'a1',
      parts: [{ file: { fileWithBytes: 'aGk=', mimeType: 'a/b', name: 'n' } }, { file: { fileWithUri: 'u' } }],
    },
  ],
  history: [],
};

describe('encodeRestResult', () => {
  const get: Operation = { name: 'GetTask', params: { id: 't1' } };

  it('returns the canonical value in v1.0', () => {
    expect(encodeRestResult('1.0', get, task)).toBe(task);
    expect(encodeRestEvent('1.0', { task })).toStrictEqual({ task });
  });

  it('returns the JSON of the proto in v0.3', () => {
    expect(encodeRestResult('0.3', get, task)).toStrictEqual(protoTask);
    const send: Operation = { name: 'SendMessage', params: { message: answer } };
    expect(encodeRestResult('0.3', send, { task })).toStrictEqual({ task: protoTask });
    expect(encodeRestResult('0.3', send, { message: answer })).toStrictEqual({ message: protoMessage });
    const page = { tasks: [task], nextPageToken: '', pageSize: 50, totalSize: 1 };
    expect(
      encodeRestResult('0.3', { name: 'ListTasks', params: { pageSize: 50, includeArtifacts: false } }, page),
    ).toStrictEqual({ ...page, tasks: [protoTask] });
  });

  it('names push configurations as resources in v0.3', () => {
    const config = { id: 'p1', taskId: 't1', url: 'u', authentication: { scheme: 'B' } };
    const named = {
      name: 'tasks/t1/pushNotificationConfigs/p1',
      pushNotificationConfig: { id: 'p1', url: 'u', authentication: { schemes: ['B'] } },
    };
    const params = { taskId: 't1', id: 'p1' };
    expect(encodeRestResult('0.3', { name: 'GetTaskPushNotificationConfig', params }, config)).toStrictEqual(named);
    expect(
      encodeRestResult('0.3', { name: 'ListTaskPushNotificationConfigs', params }, { configs: [config] }),
    ).toStrictEqual({ configs: [named], nextPageToken: '' });
  });

  it.each(['1.0', '0.3'] as const)('returns no body for a deletion in v%s', (version) =>
    expect(
      encodeRestResult(version, { name: 'DeleteTaskPushNotificationConfig', params: { taskId: 't' } }, undefined),
    ).toBeUndefined(),
  );

  it('streams the events of the v0.3 proto', () => {
    const status = { state: 'TASK_STATE_INPUT_REQUIRED' } as const;
    const artifact = { artifactId: 'a1', parts: [{ text: 'x' }] };
    const events: [StreamResponse, Json][] = [
      [{ task }, { task: protoTask }],
      [{ message: answer }, { message: protoMessage }],
      [
        { statusUpdate: { taskId: 't1', contextId: 'c1', status } },
        { statusUpdate: { taskId: 't1', contextId: 'c1', status, final: true } },
      ],
      [
        { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact, lastChunk: true } },
        { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact, lastChunk: true } },
      ],
    ];
    for (const [event, encoded] of events) expect(encodeRestEvent('0.3', event)).toStrictEqual(encoded);
  });
});
