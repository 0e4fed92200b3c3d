import type { Json, JsonObject } from '../../../kernel/json.js';
import type { SendParams } from '../request/operations.js';
import { decode } from './decode.js';

const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] };

function decoded(method: string, params: unknown) {
  const result = decode(method, params);
  if (!result.ok) throw new Error(result.message);
  return result;
}

function violations(method: string, params: unknown): Record<string, string> {
  const result = decode(method, params);
  if (result.ok || result.code !== 'invalid_params') throw new Error('not refused');
  return Object.fromEntries((result.violations ?? []).map(({ field, description }) => [field, description]));
}

const sent = (change: JsonObject) => decoded('SendMessage', { message: { ...message, ...change } });
const refused = (change: JsonObject) => violations('SendMessage', { message: { ...message, ...change } });
const configured = (configuration: Json) => violations('SendMessage', { message, configuration });

describe('SendMessage', () => {
  it('reads every member', () => {
    const params = {
      tenant: 'acme',
      message: {
        ...message,
        contextId: 'c1',
        taskId: 't1',
        metadata: { a: [1, null] },
        extensions: ['urn:x'],
        referenceTaskIds: ['t0'],
      },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        taskPushNotificationConfig: {
          id: 'p1',
          url: 'https://a.example/hook',
          token: 'secret',
          authentication: { scheme: 'Bearer', credentials: 'x' },
        },
        historyLength: 3,
        returnImmediately: true,
      },
      metadata: { b: 1 },
      idempotencyKey: 'k',
    };
    expect(decoded('SendMessage', params)).toEqual({
      ok: true,
      version: '1.0',
      tenant: 'acme',
      operation: {
        name: 'SendMessage',
        params: {
          message: params.message,
          acceptedOutputModes: ['text/plain'],
          pushConfig: { ...params.configuration.taskPushNotificationConfig, format: 'v1' },
          historyLength: 3,
          returnImmediately: true,
          metadata: { b: 1 },
          idempotencyKey: 'k',
        },
      },
    });
  });

  it('reads the snake_case names of the proto', () => {
    const { operation } = decoded('SendStreamingMessage', {
      message: {
        message_id: 'm1',
        role: 'ROLE_USER',
        context_id: 'c1',
        task_id: 't1',
        reference_task_ids: ['t0'],
        parts: [{ text: 'x', media_type: 'text/plain' }],
      },
      configuration: {
        accepted_output_modes: ['text/plain'],
        history_length: 0,
        return_immediately: true,
        task_push_notification_config: { url: 'https://a.example' },
      },
    });
    expect(operation).toEqual({
      name: 'SendStreamingMessage',
      params: {
        message: {
          messageId: 'm1',
          contextId: 'c1',
          taskId: 't1',
          role: 'ROLE_USER',
          parts: [{ text: 'x', mediaType: 'text/plain' }],
          referenceTaskIds: ['t0'],
        },
        acceptedOutputModes: ['text/plain'],
        pushConfig: { url: 'https://a.example', format: 'v1' },
        historyLength: 0,
        returnImmediately: true,
      },
    });
  });

  it('keeps only known members, in one order, for any order of the request', () => {
    const { operation } = decoded('SendMessage', {
      extra: 1,
      message: {
        parts: [{ kind: 'text', mediaType: 'text/plain', text: 'x', filename: '' }],
        kind: 'message',
        role: 'ROLE_USER',
        taskId: null,
        messageId: 'm1',
        contextId: 'c1',
        extensions: [],
      },
      configuration: { returnImmediately: false, acceptedOutputModes: [] },
    });
    const parts = '[{"text":"x","mediaType":"text/plain"}]';
    expect(JSON.stringify(operation.params)).toBe(
      `{"message":{"messageId":"m1","contextId":"c1","role":"ROLE_USER","parts":${parts}}}`,
    );
  });

  it.each<[string, JsonObject, string]>([
    ['no messageId', { messageId: null }, 'message.messageId'],
    ['an empty messageId', { messageId: '' }, 'message.messageId'],
    ['a long messageId', { messageId: 'x'.repeat(257) }, 'message.messageId'],
    ['a numeric messageId', { messageId: 1 }, 'message.messageId'],
    ['no role', { role: null }, 'message.role'],
    ['the role of the agent', { role: 'ROLE_AGENT' }, 'message.role'],
    ['an unspecified role', { role: 'ROLE_UNSPECIFIED' }, 'message.role'],
    ['an unknown role', { role: 'user' }, 'message.role'],
    ['an empty role', { role: '' }, 'message.role'],
    ['the number of the role of an agent', { role: 2 }, 'message.role'],
    ['the number of no role', { role: 3 }, 'message.role'],
    ['the default of the proto for a role', { role: 'ROLE_UNSPECIFIED' }, 'message.role'],
    ['no parts', { parts: null }, 'message.parts'],
    ['empty parts', { parts: [] }, 'message.parts'],
    ['parts that are not a list', { parts: 'text' }, 'message.parts'],
    ['parts in an object', { parts: { text: 'x' } }, 'message.parts'],
    ['a part that is not an object', { parts: ['x'] }, 'message.parts[0]'],
    ['a part without content', { parts: [{ text: 'x' }, { mediaType: 'a/b' }] }, 'message.parts[1]'],
    ['a part with two contents', { parts: [{ text: 'x', url: 'y' }] }, 'message.parts[0]'],
    ['a part with text and data', { parts: [{ text: 'x', data: 1 }] }, 'message.parts[0]'],
    ['an older file part', { parts: [{ kind: 'file', file: { uri: 'x' } }] }, 'message.parts[0]'],
    ['text that is not a string', { parts: [{ text: 1 }] }, 'message.parts[0].text'],
    ['raw that is not base64', { parts: [{ raw: 'a b' }] }, 'message.parts[0].raw'],
    ['raw of an impossible length', { parts: [{ raw: 'abcde' }] }, 'message.parts[0].raw'],
    ['raw with padding inside', { parts: [{ raw: 'ab=c' }] }, 'message.parts[0].raw'],
    ['an empty url', { parts: [{ url: '' }] }, 'message.parts[0].url'],
    ['a url with a line break', { parts: [{ url: 'http://x\r\nA: b' }] }, 'message.parts[0].url'],
    ['a media type that is not a string', { parts: [{ text: 'x', mediaType: {} }] }, 'message.parts[0].mediaType'],
    ['part metadata that is not an object', { parts: [{ text: 'x', metadata: [] }] }, 'message.parts[0].metadata'],
    ['text that cannot be stored', { parts: [{ text: 'a\u0000b' }] }, 'message.parts[0].text'],
    ['half a surrogate pair', { parts: [{ text: 'a\ud800b' }] }, 'message.parts[0].text'],
    ['data that cannot be stored', { parts: [{ data: { 'a\u0000': 1 } }] }, 'message.parts[0].data'],
    ['a long taskId', { taskId: 'x'.repeat(257) }, 'message.taskId'],
    ['a contextId that is not a string', { contextId: 7 }, 'message.contextId'],
    ['metadata that is not an object', { metadata: 'x' }, 'message.metadata'],
    ['metadata that cannot be stored', { metadata: { a: '\u0000' } }, 'message.metadata'],
    ['extensions that are not a list', { extensions: 'urn:x' }, 'message.extensions'],
    ['an extension that is not a string', { extensions: ['urn:x', 1] }, 'message.extensions[1]'],
    ['too many extensions', { extensions: Array(51).fill('urn:x') }, 'message.extensions'],
    ['an empty reference', { referenceTaskIds: [''] }, 'message.referenceTaskIds[0]'],
    ['too many references', { referenceTaskIds: Array(51).fill('t') }, 'message.referenceTaskIds'],
    ['too many parts', { parts: Array(101).fill({ text: 'x' }) }, 'message.parts'],
  ])('refuses %s', (_what, change, field) => expect(Object.keys(refused(change))).toEqual([field]));

  it.each<[string, Json, string]>([
    ['a configuration that is not an object', [], 'configuration'],
    ['a negative historyLength', { historyLength: -1 }, 'configuration.historyLength'],
    ['a fraction of a message', { historyLength: 1.5 }, 'configuration.historyLength'],
    ['a historyLength in words', { historyLength: 'three' }, 'configuration.historyLength'],
    ['a historyLength beyond int32', { historyLength: 2 ** 31 }, 'configuration.historyLength'],
    ['a flag that is not a boolean', { returnImmediately: 'true' }, 'configuration.returnImmediately'],
    ['output modes that are not a list', { acceptedOutputModes: 'text/plain' }, 'configuration.acceptedOutputModes'],
    [
      'a push configuration without url',
      { taskPushNotificationConfig: {} },
      'configuration.taskPushNotificationConfig.url',
    ],
  ])('refuses %s', (_what, configuration, field) => expect(Object.keys(configured(configuration))).toEqual([field]));

  it('names all problems at once', () => {
    const wrong = { message: { parts: [{}, { text: 1 }], role: 'agent' }, configuration: { historyLength: -1 } };
    expect(decode('SendMessage', wrong)).toMatchObject({
      ok: false,
      code: 'invalid_params',
      message: 'message.messageId is required (and 4 more)',
    });
    expect(Object.keys(violations('SendMessage', wrong)).sort()).toEqual([
      'configuration.historyLength',
      'message.messageId',
      'message.parts[0]',
      'message.parts[1].text',
      'message.role',
    ]);
  });

  it.each<[string, Json]>([
    ['null', null],
    ['a scalar', 7],
    ['false', false],
    ['text', 'x'],
    ['a list', [1, null, 'x']],
    ['an object', { a: { b: null, c: 'ünï©ode 😀' } }],
  ])('keeps data that is %s', (_what, data) => {
    const { message } = sent({ parts: [{ data }] }).operation.params as SendParams;
    expect(message.parts).toEqual([{ data }]);
  });

  it('treats null as absent in the other contents', () => {
    const { message } = sent({ parts: [{ text: 'x', raw: null, url: null, data: null }] }).operation
      .params as SendParams;
    expect(message.parts).toEqual([{ text: 'x' }]);
  });

  it.each([
    ['', ''],
    ['aGk=', 'aGk='],
    ['aGk', 'aGk='],
    ['-_-_', '+/+/'],
    ['+/8=', '+/8='],
    ['-_8', '+/8='],
  ])('reads base64 %p as %p', (raw, canonical) => {
    const { message } = sent({ parts: [{ raw, filename: 'a.bin' }] }).operation.params as SendParams;
    expect(message.parts).toEqual([{ raw: canonical, filename: 'a.bin' }]);
  });

  it('keeps an empty text', () =>
    expect(sent({ parts: [{ text: '' }] }).operation.params).toMatchObject({ message: { parts: [{ text: '' }] } }));

  it.each(['', 'x'.repeat(256)])('refuses the idempotency key %p', (idempotencyKey) =>
    expect(Object.keys(violations('SendMessage', { message, idempotencyKey }))).toEqual(['idempotencyKey']),
  );
});

describe('push configurations', () => {
  const config = { taskId: 't1', url: 'https://a.example/hook' };
  const refusedFields = (change: JsonObject) =>
    Object.keys(violations('CreateTaskPushNotificationConfig', { ...config, ...change }));

  it('are read flat, without empty members', () => {
    const { operation } = decoded('CreateTaskPushNotificationConfig', {
      ...config,
      id: '',
      token: '',
      tenant: '',
      authentication: { scheme: 'Basic', credentials: '' },
    });
    expect(operation).toEqual({
      name: 'CreateTaskPushNotificationConfig',
      params: { ...config, authentication: { scheme: 'Basic' }, format: 'v1' },
    });
  });

  it.each<[string, JsonObject, string[]]>([
    ['no task', { taskId: null }, ['taskId']],
    ['an empty url', { url: '' }, ['url']],
    ['a long url', { url: `https://a/${'x'.repeat(2_048)}` }, ['url']],
    ['a scheme that is missing', { authentication: { credentials: 'x' } }, ['authentication.scheme']],
    ['a scheme with a line break', { authentication: { scheme: 'Bearer\r\nX: y' } }, ['authentication.scheme']],
    [
      'credentials with NUL',
      { authentication: { scheme: 'B', credentials: '\u0000' } },
      ['authentication.credentials'],
    ],
    ['a token with a line break', { token: 'a\nb' }, ['token']],
    ['a token that an HTTP header cannot hold', { token: 'a€' }, ['token']],
    ['a long id', { id: 'x'.repeat(257) }, ['id']],
  ])('are refused with %s', (_what, change, fields) => expect(refusedFields(change)).toEqual(fields));

  it.each(['GetTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfig'] as const)(
    '%s needs both ids',
    (name) => {
      expect(decoded(name, { task_id: 't1', id: 'p1' }).operation).toEqual({
        name,
        params: { taskId: 't1', id: 'p1' },
      });
      expect(Object.keys(violations(name, {}))).toEqual(['taskId', 'id']);
    },
  );

  it('are listed by page', () => {
    const list = (params: Json) => decoded('ListTaskPushNotificationConfigs', params).operation.params;
    expect(list({ taskId: 't1' })).toEqual({ taskId: 't1' });
    expect(list({ taskId: 't1', pageSize: 0, pageToken: '' })).toEqual({ taskId: 't1' });
    expect(list({ taskId: 't1', page_size: 5, page_token: 'n' })).toEqual({
      taskId: 't1',
      pageSize: 5,
      pageToken: 'n',
    });
    expect(Object.keys(violations('ListTaskPushNotificationConfigs', { pageSize: 101 })).sort()).toEqual([
      'pageSize',
      'taskId',
    ]);
  });
});

describe('ListTasks', () => {
  it('has defaults', () => {
    const expected = { name: 'ListTasks', params: { pageSize: 50, includeArtifacts: false } };
    expect(decoded('ListTasks', undefined).operation).toEqual(expected);
    expect(decoded('ListTasks', { contextId: '', pageToken: '' }).operation).toEqual(expected);
  });

  it('reads every filter', () =>
    expect(
      decoded('ListTasks', {
        context_id: 'c1',
        status: 'TASK_STATE_WORKING',
        page_size: 100,
        pageToken: 'p',
        historyLength: 0,
        status_timestamp_after: '2026-01-01T00:00:00Z',
        includeArtifacts: true,
      }).operation.params,
    ).toEqual({
      contextId: 'c1',
      status: 'TASK_STATE_WORKING',
      pageSize: 100,
      pageToken: 'p',
      historyLength: 0,
      statusTimestampAfter: Date.UTC(2026, 0, 1),
      includeArtifacts: true,
    }));

  it.each<[string, JsonObject]>([
    ['pageSize', { pageSize: 0 }],
    ['pageSize', { pageSize: 101 }],
    ['pageSize', { pageSize: 1.5 }],
    ['pageSize', { pageSize: 'five' }],
    ['pageSize', { pageSize: '1.5' }],
    ['historyLength', { historyLength: -1 }],
    ['status', { status: 'working' }],
    ['status', { status: 'toString' }],
    ['status', { status: 99 }],
    ['statusTimestampAfter', { statusTimestampAfter: 'yesterday' }],
    ['statusTimestampAfter', { statusTimestampAfter: 1_700_000_000 }],
    ['includeArtifacts', { includeArtifacts: 'true' }],
    ['contextId', { contextId: 7 }],
  ])('refuses a wrong %s', (field, params) => expect(Object.keys(violations('ListTasks', params))).toEqual([field]));

  it('treats the default of the proto as no filter', () => {
    const unspecified = decoded('ListTasks', { status: 'TASK_STATE_UNSPECIFIED' }).operation.params;
    expect(unspecified).toEqual(decoded('ListTasks', {}).operation.params);
  });
});

describe('operations on one task', () => {
  it('read the id and the members of each operation', () => {
    expect(decoded('GetTask', { id: 't1', historyLength: 2 }).operation.params).toEqual({ id: 't1', historyLength: 2 });
    expect(decoded('CancelTask', { id: 't1', metadata: { a: 1 } }).operation.params).toEqual({
      id: 't1',
      metadata: { a: 1 },
    });
    expect(decoded('SubscribeToTask', { id: 't1', tenant: 'x' })).toMatchObject({
      tenant: 'x',
      operation: { params: { id: 't1' } },
    });
  });

  it.each(['GetTask', 'CancelTask', 'SubscribeToTask'])('%s needs an id', (method) => {
    for (const params of [undefined, {}, { id: null }, { id: '' }, { id: 1 }]) {
      expect(Object.keys(violations(method, params))).toEqual(['id']);
    }
  });

  it('looks up ids of any length', () => expect(decoded('GetTask', { id: 'x'.repeat(1_000) }).ok).toBe(true));
});

describe('methods and params', () => {
  it('GetExtendedAgentCard needs none', () => {
    const expected = { ok: true, version: '1.0', operation: { name: 'GetExtendedAgentCard', params: {} } };
    expect(decode('GetExtendedAgentCard', undefined)).toEqual(expected);
    expect(decode('GetExtendedAgentCard', { extra: 1 })).toEqual(expected);
  });

  it.each([[[]], ['x'], [7], [null], [true]])('refuses params %p', (params) =>
    expect(violations('GetExtendedAgentCard', params)).toEqual({ params: 'must be an object' }),
  );

  it.each(['message/send', 'sendMessage', 'toString', '__proto__', '', 'x'.repeat(1_000)])(
    'does not know %p',
    (method) => {
      const result = decode(method, {});
      expect(result).toMatchObject({ ok: false, code: 'method_not_found' });
      expect(!result.ok && result.message.length).toBeLessThan(150);
    },
  );
});
