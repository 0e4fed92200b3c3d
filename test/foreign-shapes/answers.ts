import type { Shape } from './shape.js';

const task = (more: object = {}) => ({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, ...more });
const older = (more: object = {}) => ({
  kind: 'task',
  id: 't',
  contextId: 'c',
  status: { state: 'completed' },
  ...more,
});
const artifacts = (...parts: object[]) => ({ artifacts: [{ artifactId: 'a', parts }] });
const open = (state: string, message?: unknown) => ({ status: { state, ...(message !== undefined && { message }) } });
const words = { role: 'ROLE_AGENT', messageId: 'm', parts: [{ text: 'hi' }] };

/** Results of a send, and the output of the tool that they become. */
export const answers: readonly Shape[] = [
  ['A2A 1.0 section 3.2, message', { message: words }, 'hi'],
  ['A2A 1.0 section 3.2, task of one text', { task: task(artifacts({ text: 'a' })) }, 'a'],
  ['A2A 1.0, task of one data part', { task: task(artifacts({ data: { a: 1 } })) }, { a: 1 }],
  ['A2A 1.0, data null', { task: task(artifacts({ data: null })) }, null],
  ['A2A 1.0, two parts', { task: task(artifacts({ text: 'a' }, { text: 'b' })) }, { artifactId: 'a', parts: [{}, {}] }],
  [
    'A2A 1.0, two artifacts',
    { task: task({ artifacts: [{ parts: [{ text: 'a' }] }, { parts: [{ text: 'b' }] }] }) },
    { artifacts: [{}, {}] },
  ],
  [
    'A2A 1.0, task that works',
    { task: task(open('TASK_STATE_WORKING')) },
    { taskId: 't', contextId: 'c', state: 'working' },
  ],
  [
    'A2A 1.0, task that asks',
    { task: task(open('TASK_STATE_INPUT_REQUIRED', words)) },
    { state: 'input-required', message: 'hi' },
  ],
  ['ProtoJSON 1.0, empty artifacts', { task: task({ artifacts: [], ...open('TASK_STATE_COMPLETED', words) }) }, 'hi'],
  ['a2a-java 1.0, both members, one null', { task: null, message: words }, 'hi'],
  ['hand-written 1.0, a bare task', task(artifacts({ text: 'a' })), 'a'],
  ['hand-written 1.0, a bare message', words, 'hi'],
  ['A2A 0.3 section 7.1, task', older(artifacts({ kind: 'text', text: 'a' })), 'a'],
  [
    'A2A 0.3 section 7.1, message',
    { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: 'hi' }] },
    'hi',
  ],
  ['A2A 0.3, one data part', older(artifacts({ kind: 'data', data: { a: 1 } })), { a: 1 }],
  [
    'A2A 0.3, a file stays as it is',
    older(artifacts({ kind: 'file', file: { uri: 'https://x' } })),
    { parts: [{ kind: 'file' }] },
  ],
  [
    'A2A 0.3, null members of pydantic',
    older({ artifacts: null, history: null, metadata: null, ...open('completed', null) }),
    { taskId: 't', state: 'completed' },
  ],
  ['A2A 0.3, status message', older(open('completed', { role: 'agent', parts: [{ kind: 'text', text: 'ok' }] })), 'ok'],
  ['A2A 0.2, no contextId', { kind: 'task', id: 't', status: { state: 'working' } }, { taskId: 't', state: 'working' }],
  [
    'A2A 0.1, parts told by type',
    { id: 't', status: { state: 'completed' }, ...artifacts({ type: 'text', text: 'a' }) },
    'a',
  ],
  [
    'A2A 0.1, artifact without an id',
    {
      id: 't',
      status: { state: 'completed' },
      artifacts: [{ name: 'n', index: 0, parts: [{ type: 'text', text: 'a' }] }],
    },
    'a',
  ],
  ['hand-written 0.3, a text as status message', older(open('completed', 'fine')), 'fine'],
  [
    'A2A 0.3 over the proto, content in place of parts',
    { message: { messageId: 'm', role: 'ROLE_AGENT', content: [{ text: 'hi' }] } },
    'hi',
  ],
  ['A2A 0.3, auth-required', older(open('auth-required')), { state: 'auth-required' }],
  ['A2A 0.3, submitted', older(open('submitted')), { state: 'submitted' }],
  [
    'mixed words: a bare task with a state of 1.0',
    older({ ...open('TASK_STATE_COMPLETED'), ...artifacts({ text: 'a' }) }),
    'a',
  ],
  ['A2A 0.3, failed', older(open('failed', { parts: [{ kind: 'text', text: 'broke' }] })), /broke/],
  ['A2A 1.0, rejected', { task: task(open('TASK_STATE_REJECTED')) }, /ended as rejected/],
  ['A2A 0.3, canceled', older(open('canceled')), /ended as canceled/],
  ['A2A 1.0, canceled as some spell it', { task: task(open('TASK_STATE_CANCELLED')) }, /ended as canceled/],
  ['a result that is a text', 'hi', /not A2A: .*neither a task nor a message: it is not an object/],
  ['both a task and a message', { task: task(), message: words }, /both task and message/],
  ['a task without an id', { task: task({ id: undefined }) }, /task\.id is not a string/],
  ['a task without a status', { task: { id: 't' } }, /task\.status is not an object/],
  ['a status without a state', { task: task({ status: {} }) }, /task\.status\.state is not a string/],
  ['artifacts as an object', older({ artifacts: {} }), /artifacts is not a list/],
  [
    'a text part without its text',
    { message: { ...words, parts: [{ kind: 'text' }] } },
    /message\.parts\[0\] has no content of its kind/,
  ],
  ['a kind that is no answer', { kind: 'status-update', taskId: 't', status: { state: 'working' } }, /kind is neither/],
  ['an artifact that is a text', older({ artifacts: ['a'] }), /artifacts\[0\] is not an object/],
  [
    'a status message with a text as its parts',
    older(open('working', { parts: 'a' })),
    /status\.message\.parts is not a list/,
  ],
  ['nothing at all', {}, /it has no task, message, status or parts/],
];

/** Events of streams, and what the reader of 0.3 is given of them. */
export const events: readonly Shape[] = [
  [
    'A2A 0.3 section 7.2.2',
    { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: false },
    { status: { state: 'working' } },
  ],
  [
    'A2A 0.3 section 7.2.3',
    {
      kind: 'artifact-update',
      taskId: 't',
      contextId: 'c',
      artifact: { artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] },
    },
    { artifact: { artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] } },
  ],
  ['A2A 0.3, a task', older(), { kind: 'task', id: 't', status: { state: 'completed' } }],
  [
    'A2A 0.3, a message',
    { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: 'x' }] },
    { kind: 'message', parts: [{ text: 'x' }] },
  ],
  ['A2A 0.2, no kind', { id: 't', status: { state: 'working' } }, { kind: 'task', contextId: '' }],
  [
    'A2A 0.1, parts told by type',
    { kind: 'artifact-update', taskId: 't', artifact: { parts: [{ type: 'text', text: 'x' }], index: 0 } },
    { artifact: { artifactId: 'artifact-1', parts: [{ kind: 'text' }] } },
  ],
  [
    'a2a-python 0.3, null members',
    {
      kind: 'status-update',
      taskId: 't',
      contextId: 'c',
      metadata: null,
      status: { state: 'working', message: null, timestamp: null },
    },
    { status: { state: 'working' } },
  ],
  [
    'A2A 1.0 words in a stream of 0.3',
    { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } },
    { status: { state: 'working' } },
  ],
  [
    'a part of an unknown kind',
    { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'chart', points: [] }] },
    { parts: [{ kind: 'data', data: { kind: 'chart' } }] },
  ],
  [
    'a text as status message',
    { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working', message: 'on it' } },
    { status: { message: { parts: [{ kind: 'text', text: 'on it' }] } } },
  ],
  [
    'a message without an id',
    { kind: 'message', role: 'assistant', parts: [] },
    { role: 'agent', messageId: 'unnamed' },
  ],
  ['an event that is a text', 'ping', /it is no object/],
  ['an empty object', {}, /no task, message, status or parts/],
  ['a status update without a status', { kind: 'status-update', taskId: 't' }, /status is not an object/],
  ['an artifact update without an artifact', { kind: 'artifact-update', taskId: 't' }, /artifact is not an object/],
  [
    'an artifact with a text as its parts',
    { kind: 'artifact-update', taskId: 't', artifact: { parts: 'x' } },
    /artifact\.parts is not a list/,
  ],
];
