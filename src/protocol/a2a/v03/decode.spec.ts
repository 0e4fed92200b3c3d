import type { Json, JsonObject } from '../../../kernel/json.js';
import type { SendParams } from '../request/operations.js';
import { decode } from './decode.js';

const options = { newId: () => 'made' };
const message = { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hello' }] };

function decoded(method: string, params: unknown, given = options) {
  const result = decode(method, params, given);
  if (!result.ok) throw new Error(result.message);
  return result;
}

const sent = (params: JsonObject) => decoded('message/send', params).operation.params as SendParams;

function refused(method: string, params: unknown, given: { newId?: () => string } = options): string[] {
  const result = decode(method, params, given);
  if (result.ok || result.code !== 'invalid_params') throw new Error('not refused');
  return (result.violations ?? []).map(({ field }) => field);
}

const refusedMessage = (change: JsonObject) => refused('message/send', { message: { ...message, ...change } });

describe('message/send', () => {
  it('reads every member', () => {
    const { operation } = decoded('message/stream', {
      message: {
        ...message,
        contextId: 'c1',
        taskId: 't1',
        metadata: { a: 1 },
        extensions: ['urn:x'],
        referenceTaskIds: ['t0'],
      },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        historyLength: 2,
        blocking: false,
        pushNotificationConfig: {
          id: 'p1',
          url: 'https://a.example',
          token: 'x',
          authentication: { schemes: ['Bearer', 'Basic'], credentials: 'y' },
        },
      },
      metadata: { b: 1 },
    });
    expect(operation).toEqual({
      name: 'SendStreamingMessage',
      params: {
        message: {
          messageId: 'm1',
          contextId: 'c1',
          taskId: 't1',
          role: 'ROLE_USER',
          parts: [{ text: 'hello' }],
          metadata: { a: 1 },
          extensions: ['urn:x'],
          referenceTaskIds: ['t0'],
        },
        acceptedOutputModes: ['text/plain'],
        pushConfig: {
          id: 'p1',
          url: 'https://a.example',
          token: 'x',
          authentication: { scheme: 'Bearer', credentials: 'y' },
          format: 'v0.3',
        },
        historyLength: 2,
        returnImmediately: true,
        metadata: { b: 1 },
      },
    });
  });

  const file = { bytes: 'aGk=', name: 'a.txt', mimeType: 'text/plain' };
  const canonicalFile = { raw: 'aGk=', filename: 'a.txt', mediaType: 'text/plain' };
  it.each<[string, JsonObject, JsonObject]>([
    ['text by kind', { kind: 'text', text: 'x', metadata: { a: 1 } }, { text: 'x', metadata: { a: 1 } }],
    ['text by type', { type: 'text', text: 'x' }, { text: 'x' }],
    ['text by member', { text: 'x' }, { text: 'x' }],
    ['bytes by kind', { kind: 'file', file }, canonicalFile],
    ['bytes by type', { type: 'file', file, metadata: { a: 1 } }, { ...canonicalFile, metadata: { a: 1 } }],
    ['bytes by member', { file }, canonicalFile],
    ['bytes of the proto', { file: { file_with_bytes: 'aGk=', mime_type: 'a/b' } }, { raw: 'aGk=', mediaType: 'a/b' }],
    ['a uri', { kind: 'file', file: { uri: 'https://a.example/x', name: '' } }, { url: 'https://a.example/x' }],
    [
      'a file of v1.0',
      { raw: 'aGk', filename: 'a', mediaType: 'a/b' },
      { raw: 'aGk=', filename: 'a', mediaType: 'a/b' },
    ],
    ['a url of v1.0', { url: 'https://a.example/x' }, { url: 'https://a.example/x' }],
    ['data by kind', { kind: 'data', data: { a: null } }, { data: { a: null } }],
    ['data by type', { type: 'data', data: { data: 1 } }, { data: { data: 1 } }],
    ['data by member', { data: { data: 1 } }, { data: { data: 1 } }],
    ['data that is not an object', { kind: 'data', data: [1] }, { data: [1] }],
    ['null', { kind: 'data', data: null }, { data: null }],
    [
      'wrapped data',
      { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true, a: 1 } },
      { data: [1], metadata: { a: 1 } },
    ],
    ['wrapped null', { kind: 'data', data: { value: null }, metadata: { data_part_compat: true } }, { data: null }],
  ])('reads %s', (_what, part, canonical) =>
    expect(sent({ message: { ...message, parts: [part] } }).message.parts).toEqual([canonical]),
  );

  it.each<[string, JsonObject, string[]]>([
    ['the role of the agent', { role: 'agent' }, ['message.role']],
    ['an empty messageId', { messageId: '' }, ['message.messageId']],
    ['no parts', { parts: null }, ['message.parts']],
    ['empty parts', { parts: [] }, ['message.parts']],
    ['parts that are not a list', { parts: 'x' }, ['message.parts']],
    ['an unknown kind', { parts: [{ kind: 'video', text: 'x' }] }, ['message.parts[0].kind']],
    ['an unknown type', { parts: [{ type: 'video' }] }, ['message.parts[0].type']],
    ['a text part without text', { parts: [{ kind: 'text' }] }, ['message.parts[0].text']],
    ['a data part without data', { parts: [{ kind: 'data' }] }, ['message.parts[0].data']],
    ['a file part without file', { parts: [{ kind: 'file' }] }, ['message.parts[0].file']],
    ['a file of nothing', { parts: [{ kind: 'file', file: { name: 'x' } }] }, ['message.parts[0].file']],
    ['bytes and uri', { parts: [{ kind: 'file', file: { bytes: '', uri: 'x' } }] }, ['message.parts[0].file']],
    ['broken bytes', { parts: [{ kind: 'file', file: { bytes: '?' } }] }, ['message.parts[0].file.bytes']],
    ['a part that is nothing', { parts: [{}] }, ['message.parts[0]']],
  ])('refuses %s', (_what, change, fields) => expect(refusedMessage(change)).toEqual(fields));

  it('reads a message of the proto', () => {
    const { message: read } = sent({
      message: {
        message_id: 'm1',
        role: 'ROLE_USER',
        content: [
          { text: 'x' },
          { file: { fileWithUri: 'https://a.example', mimeType: 'a/b', name: 'n' } },
          { data: { data: { a: 1 } } },
          { data: { data: { value: 7 } }, metadata: { data_part_compat: true } },
          { kind: 'data', data: { data: 1 } },
        ],
      },
    });
    expect(read).toEqual({
      messageId: 'm1',
      role: 'ROLE_USER',
      parts: [
        { text: 'x' },
        { url: 'https://a.example', filename: 'n', mediaType: 'a/b' },
        { data: { a: 1 } },
        { data: 7 },
        { data: { data: 1 } },
      ],
    });
  });
});

describe('waiting for the answer', () => {
  const waits = (params: JsonObject) => sent({ message, ...params }).returnImmediately !== true;

  it.each<[JsonObject, boolean]>([
    [{}, true],
    [{ configuration: {} }, true],
    [{ configuration: { blocking: null } }, true],
    [{ configuration: { blocking: true } }, true],
    [{ configuration: { blocking: false } }, false],
    [{ configuration: { returnImmediately: true } }, false],
    [{ configuration: { returnImmediately: false } }, true],
    [{ async: true }, false],
    [{ async: false }, true],
    [{ async_mode: true }, false],
    [{ async_mode: true, configuration: { blocking: true } }, false],
    [{ webhook_url: 'https://a.example' }, false],
  ])('%j: %p', (params, expected) => expect(waits(params)).toBe(expected));

  it('is off when a proto JSON configuration omits blocking, which means false there', () => {
    const proto = { messageId: 'm1', role: 'ROLE_USER', content: [{ text: 'x' }] };
    expect(waits({ message: proto })).toBe(true);
    expect(waits({ message: proto, configuration: {} })).toBe(false);
    expect(waits({ message: proto, configuration: { blocking: true } })).toBe(true);
  });
});

describe('older members', () => {
  it('async answers with the state working', () =>
    expect(sent({ message, async: true })).toMatchObject({ returnImmediately: true, answerAs: 'working' }));

  it('async_mode is a member of Reyn', () =>
    expect(sent({ message, async_mode: true }).reyn).toEqual({ isAnswer: false }));

  it('webhook_url is a push configuration with the format of Reyn', () =>
    expect(sent({ message, webhook_url: 'https://a.example' })).toMatchObject({
      pushConfig: { url: 'https://a.example', format: 'reyn' },
      reyn: { isAnswer: false },
    }));

  it('webhook_url cannot be combined with another push configuration', () =>
    expect(
      refused('message/send', {
        message,
        webhook_url: 'https://a.example',
        configuration: { pushNotificationConfig: { url: 'https://b.example' } },
      }),
    ).toEqual(['webhook_url']));

  it('task_id names the task that the message answers', () => {
    expect(sent({ message, task_id: 't1' })).toMatchObject({ message: { taskId: 't1' }, reyn: { isAnswer: true } });
    expect(sent({ message: { ...message, taskId: 't1' }, task_id: 't1' }).message.taskId).toBe('t1');
    expect(refused('message/send', { message: { ...message, taskId: 't2' }, task_id: 't1' })).toEqual(['task_id']);
  });

  it('taskId and correlationId next to the message are the session of the bridge, not a task', () => {
    const { message: read, reyn } = sent({ message, taskId: 'a2a-1', correlationId: 'a2a-1' });
    expect(read).not.toHaveProperty('taskId');
    expect(reyn).toBeUndefined();
  });

  it('choice_id next to the message overrides the one in its metadata', () => {
    const chosen = { ...message, taskId: 't1', metadata: { choice_id: 'b' } };
    expect(sent({ message: chosen, choice_id: 'a' })).toMatchObject({ choiceId: 'a', reyn: { isAnswer: true } });
    expect(sent({ message: chosen })).toMatchObject({ choiceId: 'b', reyn: { isAnswer: true } });
    expect(sent({ message, task_id: 't1', choice_id: 'a' })).toMatchObject({ choiceId: 'a', reyn: { isAnswer: true } });
    expect(sent({ message: { ...message, metadata: { choice_id: 7 } } })).not.toHaveProperty('choiceId');
  });

  it('contextId can be next to the message', () => {
    expect(sent({ message, contextId: 'c1' }).message.contextId).toBe('c1');
    expect(sent({ message: { ...message, contextId: 'c2' }, contextId: 'c1' }).message.contextId).toBe('c2');
  });

  it('idempotencyKey has up to 255 characters', () => {
    expect(sent({ message, idempotencyKey: 'x'.repeat(255) }).idempotencyKey).toHaveLength(255);
    expect(refused('message/send', { message, idempotencyKey: 'x'.repeat(256) })).toEqual(['idempotencyKey']);
    expect(refused('message/send', { message, idempotencyKey: '' })).toEqual(['idempotencyKey']);
  });

  it('a message can be a text', () => {
    expect(sent({ message: 'hello', contextId: 'c1' }).message).toEqual({
      messageId: 'made',
      role: 'ROLE_USER',
      parts: [{ text: 'hello' }],
      contextId: 'c1',
    });
    expect(refused('message/send', { message: '' })).toEqual(['message']);
  });

  it('(N1) reads the examples of Reyn: an absent role is that of the user', () => {
    const parts = [{ kind: 'text', text: 'review the PR' }];
    const read = { messageId: 'made', role: 'ROLE_USER', parts: [{ text: 'review the PR' }] };
    expect(sent({ message: { parts }, async_mode: true })).toMatchObject({ message: read, returnImmediately: true });
    expect(sent({ message: { parts }, task_id: 't1' }).message).toEqual({ ...read, taskId: 't1' });
    expect(refused('message/send', { message: { parts, role: 'system' } })).toEqual(['message.role']);
  });

  it('(C21) accepts default values and enum numbers of the proto', () => {
    const printed = { contextId: '', taskId: '', role: 1, content: [{ text: 'x' }], extensions: [] };
    const configuration = { acceptedOutputModes: [], historyLength: 0, blocking: true };
    expect(sent({ message: { ...printed, messageId: 'm1' }, configuration })).toEqual({
      message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    });
  });

  it('(N8) keeps a part of a kind with a namespace as data', () => {
    const activity = { kind: 'agent-native/agent-activity', activity: { step: 1 } };
    const metadata = { 'urn:rialto:whole-part': true };
    expect(sent({ message: { ...message, parts: [activity] } }).message.parts).toEqual([{ data: activity, metadata }]);
  });

  it('(K6) refuses a message without an id when its members show that it is of 0.3', () => {
    const { messageId: _none, ...unnamed } = message;
    const proto = { role: 'ROLE_USER', content: [{ text: 'x' }] };
    for (const each of [unnamed, { ...unnamed, messageId: '' }, proto])
      expect(refused('message/send', { message: each })).toEqual(['message.messageId']);
  });

  it('a message in an older spelling can lack its id when newId is given', () => {
    const unnamed = { role: 'user', parts: [{ type: 'text', text: 'x' }] };
    expect(sent({ message: unnamed }).message.messageId).toBe('made');
    expect(refused('message/send', { message: unnamed }, {})).toEqual(['message.messageId']);
    expect(refused('message/send', { message: 'x' }, {})).toEqual(['message']);
  });

  it('the skill of the bridge moves to the metadata and needs no role', () => {
    const bridged = { skill: { skillId: 'deploy' }, parts: [{ kind: 'data', data: {} }], metadata: { a: 1 } };
    expect(sent({ message: bridged }).message).toEqual({
      messageId: 'made',
      role: 'ROLE_USER',
      parts: [{ data: {} }],
      metadata: { a: 1, skillId: 'deploy' },
    });
    expect(sent({ message: { ...message, skill: 'x' } }).message).not.toHaveProperty('metadata');
  });

  it.each<[JsonObject, string]>([
    [{ async: 'yes' }, 'async'],
    [{ async_mode: 1 }, 'async_mode'],
    [{ webhook_url: '' }, 'webhook_url'],
    [{ task_id: 7 }, 'task_id'],
    [{ choice_id: {} }, 'choice_id'],
    [{ contextId: '' }, 'contextId'],
  ])('refuses %j', (params, field) => expect(refused('message/send', { message, ...params })).toEqual([field]));
});

describe('methods', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['tasks/get', { id: 't1', historyLength: 0 }, { name: 'GetTask', params: { id: 't1', historyLength: 0 } }],
    ['tasks/cancel', { id: 't1', metadata: {} }, { name: 'CancelTask', params: { id: 't1', metadata: {} } }],
    ['tasks/resubscribe', { id: 't1' }, { name: 'SubscribeToTask', params: { id: 't1' } }],
    ['tasks/subscribe', { id: 't1' }, { name: 'SubscribeToTask', params: { id: 't1', endedToo: true } }],
    [
      'tasks/pushNotificationConfig/set',
      { taskId: 't1', pushNotificationConfig: { url: 'u', authentication: { schemes: [] } } },
      { name: 'CreateTaskPushNotificationConfig', params: { taskId: 't1', url: 'u', format: 'v0.3' } },
    ],
    [
      'tasks/pushNotification/set',
      { taskId: 't1', pushNotificationConfig: { url: 'u', token: 't' } },
      { name: 'CreateTaskPushNotificationConfig', params: { taskId: 't1', url: 'u', token: 't', format: 'task' } },
    ],
    [
      'tasks/pushNotificationConfig/get',
      { id: 't1' },
      { name: 'GetTaskPushNotificationConfig', params: { taskId: 't1' } },
    ],
    [
      'tasks/pushNotificationConfig/get',
      { id: 't1', pushNotificationConfigId: 'p1' },
      { name: 'GetTaskPushNotificationConfig', params: { taskId: 't1', id: 'p1' } },
    ],
    [
      'tasks/pushNotification/get',
      { taskId: 't1', id: 'p1' },
      { name: 'GetTaskPushNotificationConfig', params: { taskId: 't1', id: 'p1' } },
    ],
    [
      'tasks/pushNotificationConfig/list',
      { id: 't1' },
      { name: 'ListTaskPushNotificationConfigs', params: { taskId: 't1' } },
    ],
    [
      'tasks/pushNotificationConfig/delete',
      { id: 't1', pushNotificationConfigId: 'p1' },
      { name: 'DeleteTaskPushNotificationConfig', params: { taskId: 't1', id: 'p1' } },
    ],
    [
      'tasks/pushNotification/delete',
      { taskId: 't1' },
      { name: 'DeleteTaskPushNotificationConfig', params: { taskId: 't1' } },
    ],
  ])('%s of %j', (method, params, operation) => {
    const { rejectedFails, ...read } = decoded(method, params);
    expect(read).toEqual({ ok: true, version: '0.3', operation });
    expect(rejectedFails).toBe(/^tasks\/(?:send|sendSubscribe|subscribe)$/.test(method) || undefined); // (N11)
  });

  it('v0.3 has no tenant', () => expect(decoded('tasks/get', { id: 't1', tenant: 7 })).not.toHaveProperty('tenant'));

  it.each(['message/send', 'tasks/send'])('%s sends', (method) =>
    expect(decoded(method, { message }).operation.name).toBe('SendMessage'),
  );
  it.each(['message/stream', 'tasks/sendSubscribe'])('%s sends and streams', (method) =>
    expect(decoded(method, { message }).operation.name).toBe('SendStreamingMessage'),
  );
  it.each(['agent/getAuthenticatedExtendedCard', 'agent/authenticatedExtendedCard'])('%s needs no params', (method) =>
    expect(decoded(method, undefined).operation).toEqual({ name: 'GetExtendedAgentCard', params: {} }),
  );

  it.each<[string, Json, string[]]>([
    ['message/send', {}, ['message']],
    ['message/send', { message: [] }, ['message']],
    ['message/send', [], ['params']],
    ['tasks/get', {}, ['id']],
    ['tasks/get', { id: 't1', historyLength: -1 }, ['historyLength']],
    ['tasks/pushNotificationConfig/set', { taskId: 't1' }, ['pushNotificationConfig']],
    ['tasks/pushNotificationConfig/set', { pushNotificationConfig: {} }, ['pushNotificationConfig.url', 'taskId']],
    ['tasks/pushNotificationConfig/delete', { id: 't1' }, ['pushNotificationConfigId']],
    [
      'tasks/pushNotificationConfig/set',
      { taskId: 't', pushNotificationConfig: { url: 'u', authentication: { schemes: [], credentials: 'x' } } },
      ['pushNotificationConfig.authentication.schemes'],
    ],
  ])('%s refuses %j', (method, params, fields) => expect(refused(method, params)).toEqual(fields));

  it.each(['SendMessage', 'tasks/list', 'tasks/', 'constructor', '__proto__'])('does not know %p', (method) =>
    expect(decode(method, {})).toMatchObject({ ok: false, code: 'method_not_found' }),
  );
});
