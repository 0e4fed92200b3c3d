import type { Shape } from './shape.js';

const text = (more: object = {}) => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }], ...more });
const older = (more: object = {}) => ({
  kind: 'message',
  messageId: 'm',
  role: 'user',
  parts: [{ kind: 'text', text: 'hi' }],
  ...more,
});
const send = (message: unknown, more: object = {}) => ({ method: 'SendMessage', params: { message, ...more } });
const sendOlder = (message: unknown, more: object = {}) => ({ method: 'message/send', params: { message, ...more } });
const parts = (...read: object[]) => ({ name: 'SendMessage', params: { message: { parts: read } } });
const part = (...given: object[]) => send(text({ parts: given }));
const partOlder = (...given: object[]) => sendOlder(older({ parts: given }));
const get = { name: 'GetTask', params: { id: 't' } };
const config = { url: 'https://hook.example/x', token: 'tok' };

export const requests: readonly Shape[] = [
  ['A2A 1.0 section 3.1.1', send(text()), parts({ text: 'hi' })],
  [
    'A2A 1.0, SendStreamingMessage',
    { method: 'SendStreamingMessage', params: { message: text() } },
    { name: 'SendStreamingMessage' },
  ],
  ['ProtoJSON 1.0, empty ids', send(text({ taskId: '', contextId: '' })), parts({ text: 'hi' })],
  ['ProtoJSON 1.0, empty lists', send(text({ extensions: [], referenceTaskIds: [] })), parts({ text: 'hi' })],
  [
    'protobuf-es, snake_case',
    send({ message_id: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }], context_id: 'c' }),
    { params: { message: { messageId: 'm', contextId: 'c' } } },
  ],
  ['A2A 1.0 section 4.1.6, data', part({ data: { a: 1 } }), parts({ data: { a: 1 } })],
  ['A2A 1.0 section 4.1.6, data that is a list', part({ data: [1, null] }), parts({ data: [1, null] })],
  ['A2A 1.0 section 4.1.6, data null', part({ data: null }), parts({ data: null })],
  [
    'A2A 1.0 section 4.1.6, raw',
    part({ raw: 'aGk=', filename: 'f', mediaType: 'text/plain' }),
    parts({ raw: 'aGk=', filename: 'f' }),
  ],
  ['protobuf-go, raw in the URL alphabet', part({ raw: '-_8' }), parts({ raw: '+/8=' })],
  ['A2A 1.0 section 4.1.6, url', part({ url: 'https://x.example/f' }), parts({ url: 'https://x.example/f' })],
  ['A2A 1.0 section 4.1.6, an empty text', part({ text: '' }), parts({ text: '' })],
  ['A2A 1.0, several parts', part({ text: 'a' }, { data: 1 }), parts({ text: 'a' }, { data: 1 })],
  [
    'a2a-java 1.0, unset members as null',
    part({ text: 'a', raw: null, url: null, data: null, metadata: null }),
    parts({ text: 'a' }),
  ],
  [
    'A2A 1.0 section 3.2.2, returnImmediately',
    send(text(), { configuration: { returnImmediately: true } }),
    { params: { returnImmediately: true } },
  ],
  [
    'A2A 1.0 section 3.2.2, historyLength 0',
    send(text(), { configuration: { historyLength: 0 } }),
    { params: { historyLength: 0 } },
  ],
  ['A2A 1.0, unknown members (section 5.7)', send(text({ later: 1 }), { later: {} }), parts({ text: 'hi' })],
  ['A2A 1.0, GetTask', { method: 'GetTask', params: { id: 't' } }, get],
  ['A2A 1.0, ListTasks without params', { method: 'ListTasks' }, { name: 'ListTasks' }],
  [
    'A2A 1.0, ListTasks with an empty pageToken',
    { method: 'ListTasks', params: { pageToken: '', pageSize: 5 } },
    { name: 'ListTasks', params: { pageSize: 5 } },
  ],
  ['A2A 1.0, CancelTask', { method: 'CancelTask', params: { id: 't' } }, { name: 'CancelTask', params: { id: 't' } }],
  [
    'A2A 1.0, SubscribeToTask',
    { method: 'SubscribeToTask', params: { id: 't' } },
    { name: 'SubscribeToTask', params: { id: 't' } },
  ],
  [
    'A2A 1.0.1, push configuration',
    { method: 'CreateTaskPushNotificationConfig', params: { taskId: 't', ...config } },
    { name: 'CreateTaskPushNotificationConfig', params: { taskId: 't', ...config } },
  ],
  ['A2A 1.0, GetExtendedAgentCard', { method: 'GetExtendedAgentCard' }, { name: 'GetExtendedAgentCard' }],
  ['A2A 0.3 section 7.1', sendOlder(older()), parts({ text: 'hi' })],
  [
    'A2A 0.3, message/stream',
    { method: 'message/stream', params: { message: older() } },
    { name: 'SendStreamingMessage' },
  ],
  ['A2A 0.2, no kind on the message', sendOlder(older({ kind: undefined })), parts({ text: 'hi' })],
  ['A2A 0.1, parts told by type', partOlder({ type: 'text', text: 'a' }), parts({ text: 'a' })],
  [
    'A2A 0.3 section 6.5.2, file of bytes',
    partOlder({ kind: 'file', file: { bytes: 'aGk=', name: 'f', mimeType: 'text/plain' } }),
    parts({ raw: 'aGk=', filename: 'f', mediaType: 'text/plain' }),
  ],
  [
    'A2A 0.3 section 6.5.2, file of a URI',
    partOlder({ kind: 'file', file: { uri: 'https://x.example/f' } }),
    parts({ url: 'https://x.example/f' }),
  ],
  ['A2A 0.3 section 6.5.3, data', partOlder({ kind: 'data', data: { a: 1 } }), parts({ data: { a: 1 } })],
  [
    'a2a-python 1.0 compat, wrapped data',
    partOlder({ kind: 'data', data: { value: 1 }, metadata: { data_part_compat: true } }),
    parts({ data: 1 }),
  ],
  ['A2A 0.3, parts of 1.0', partOlder({ text: 'a' }), parts({ text: 'a' })],
  [
    'A2A 0.3 section 7.1.1, blocking false',
    sendOlder(older(), { configuration: { blocking: false } }),
    { params: { returnImmediately: true } },
  ],
  [
    'A2A 0.3 section 7.1.1, push configuration',
    sendOlder(older(), { configuration: { pushNotificationConfig: config } }),
    { params: { pushConfig: config } },
  ],
  [
    'A2A 0.3, tasks/get',
    { method: 'tasks/get', params: { id: 't', historyLength: 3 } },
    { name: 'GetTask', params: { id: 't', historyLength: 3 } },
  ],
  ['A2A 0.3, tasks/cancel', { method: 'tasks/cancel', params: { id: 't' } }, { name: 'CancelTask' }],
  ['A2A 0.3, tasks/resubscribe', { method: 'tasks/resubscribe', params: { id: 't' } }, { name: 'SubscribeToTask' }],
  [
    'A2A 0.3 section 7.5, pushNotificationConfig/set',
    { method: 'tasks/pushNotificationConfig/set', params: { taskId: 't', pushNotificationConfig: config } },
    { name: 'CreateTaskPushNotificationConfig', params: { taskId: 't', ...config } },
  ],
  [
    'A2A 0.3 section 7.6, pushNotificationConfig/get',
    { method: 'tasks/pushNotificationConfig/get', params: { id: 't' } },
    { name: 'GetTaskPushNotificationConfig' },
  ],
  ['A2A 0.3, extended card', { method: 'agent/getAuthenticatedExtendedCard' }, { name: 'GetExtendedAgentCard' }],
  ['A2A 0.1, tasks/send', { method: 'tasks/send', params: { id: 't', message: older() } }, { name: 'SendMessage' }],
  [
    'ProtoJSON, an int32 as a text',
    send(text(), { configuration: { historyLength: '1' } }),
    { params: { historyLength: 1 } },
  ],
  ['no params', { method: 'SendMessage' }, /message/],
  ['params as a list', { method: 'SendMessage', params: [text()] }, /params|object/],
  ['no parts', send(text({ parts: [] })), /message\.parts/],
  ['parts absent', sendOlder(older({ parts: undefined })), /message\.parts/],
  ['two contents in one part', part({ text: 'a', url: 'https://x' }), /message\.parts\[0\]/],
  ['a part without content', part({ mediaType: 'text/plain' }), /message\.parts\[0\]/],
  ['a text that is a number', part({ text: 1 }), /message\.parts\[0\]\.text/],
  ['raw that is no base64', part({ raw: '***' }), /message\.parts\[0\]\.raw/],
  ['the role of an agent', send(text({ role: 'ROLE_AGENT' })), /message\.role/],
  ['an unknown role', sendOlder(older({ role: 'system' })), /message\.role/],
  ['no messageId', send(text({ messageId: undefined })), /message\.messageId/],
  ['a messageId that is too long', send(text({ messageId: 'm'.repeat(257) })), /message\.messageId/],
  ['NUL in a text', part({ text: 'a\u0000' }), /message/],
  [
    'a historyLength that is a text',
    send(text(), { configuration: { historyLength: '1x' } }),
    /configuration\.historyLength/,
  ],
  ['a negative historyLength', { method: 'GetTask', params: { id: 't', historyLength: -1 } }, /historyLength/],
  ['a task without its id', { method: 'GetTask', params: {} }, /id/],
  ['a page of no size', { method: 'ListTasks', params: { pageSize: 0 } }, /pageSize/],
  ['an unknown state as a filter', { method: 'ListTasks', params: { status: 'done' } }, /status/],
  [
    'a push configuration without a URL',
    { method: 'CreateTaskPushNotificationConfig', params: { taskId: 't' } },
    /url/,
  ],
  ['an unknown method', { method: 'tasks/none', params: {} }, /tasks\/none/],
];
