import { legacyPushNotificationToV1StreamResponse } from '@a2a-js/sdk/compat/v0_3';
import { StreamResponse as SdkStreamResponse } from '@a2a-js/sdk';
import type { Message, StreamResponse, Task } from '../model.js';
import type { Operation, SendParams } from '../request/operations.js';
import { terminalStates, type TaskState } from '../states.js';
import { encodeResult } from './encode.js';
import { encodeEvent } from './objects.js';

const question: Message = {
  messageId: 'm2',
  contextId: 'c1',
  taskId: 't1',
  role: 'ROLE_AGENT',
  parts: [{ text: 'Which one?' }],
};
const task: Task = {
  id: 't1',
  contextId: 'c1',
  status: { state: 'TASK_STATE_INPUT_REQUIRED', message: question, timestamp: '2026-01-01T00:00:00.000Z' },
  artifacts: [
    {
      artifactId: 'a1',
      name: 'n',
      parts: [
        { raw: 'aGk=', filename: 'a.txt', mediaType: 'text/plain' },
        { url: 'https://a.example', metadata: { k: 1 } },
        { data: { a: null } },
      ],
    },
  ],
  history: [{ messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'x' }] }],
  metadata: { k: 1 },
};
const older = {
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: {
    state: 'input-required',
    message: {
      kind: 'message',
      messageId: 'm2',
      contextId: 'c1',
      taskId: 't1',
      role: 'agent',
      parts: [{ kind: 'text', text: 'Which one?' }],
    },
    timestamp: '2026-01-01T00:00:00.000Z',
  },
  artifacts: [
    {
      artifactId: 'a1',
      name: 'n',
      parts: [
        { kind: 'file', file: { bytes: 'aGk=', name: 'a.txt', mimeType: 'text/plain' } },
        { kind: 'file', file: { uri: 'https://a.example' }, metadata: { k: 1 } },
        { kind: 'data', data: { a: null } },
      ],
    },
  ],
  history: [{ kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'x' }] }],
  metadata: { k: 1 },
};

const send = (params: Partial<SendParams> = {}) =>
  ({ name: 'SendMessage', params: { message: question, ...params } }) as const satisfies Operation;

describe('the v0.3 encoding', () => {
  it('has kinds and lower-case words', () => {
    expect(encodeResult({ name: 'GetTask', params: { id: 't1' } }, task)).toStrictEqual(older);
    expect(encodeResult(send(), { task })).toStrictEqual(older);
    expect(encodeResult(send(), { message: question })).toStrictEqual(older.status.message);
  });

  it.each<[string, unknown]>([
    ['a list', [1]],
    ['null', null],
    ['a text', 'x'],
    ['zero', 0],
  ])('wraps data that is %s', (_what, data) => {
    const message = { ...question, parts: [{ data, metadata: { k: 1 } }] } as Message;
    expect(encodeResult(send(), { message })).toMatchObject({
      parts: [{ kind: 'data', data: { value: data }, metadata: { k: 1, data_part_compat: true } }],
    });
  });

  it.each<[TaskState, string, boolean]>([
    ['TASK_STATE_SUBMITTED', 'submitted', false],
    ['TASK_STATE_WORKING', 'working', false],
    ['TASK_STATE_COMPLETED', 'completed', true],
    ['TASK_STATE_FAILED', 'failed', true],
    ['TASK_STATE_CANCELED', 'canceled', true],
    ['TASK_STATE_REJECTED', 'rejected', true],
    ['TASK_STATE_INPUT_REQUIRED', 'input-required', true],
    ['TASK_STATE_AUTH_REQUIRED', 'auth-required', false],
    ['TASK_STATE_UNSPECIFIED', 'unknown', false],
  ])('%s is %s, final: %p', (state, word, final) => {
    expect(encodeEvent({ statusUpdate: { taskId: 't1', contextId: 'c1', status: { state } } })).toStrictEqual({
      kind: 'status-update',
      taskId: 't1',
      contextId: 'c1',
      status: { state: word },
      final,
    });
    if (terminalStates.has(state)) expect(final).toBe(true);
  });

  it('streams bare events', () => {
    const artifact = { artifactId: 'a1', parts: [{ text: 'x' }] };
    expect(encodeEvent({ task })).toStrictEqual(older);
    expect(encodeEvent({ message: question })).toStrictEqual(older.status.message);
    expect(
      encodeEvent({ artifactUpdate: { taskId: 't1', contextId: 'c1', artifact, append: true, metadata: { k: 1 } } }),
    ).toStrictEqual({
      kind: 'artifact-update',
      taskId: 't1',
      contextId: 'c1',
      artifact: { artifactId: 'a1', parts: [{ kind: 'text', text: 'x' }] },
      append: true,
      metadata: { k: 1 },
    });
  });

  it('nests push configurations', () => {
    const config = { id: 'p1', taskId: 't1', url: 'u', token: 't', authentication: { scheme: 'B', credentials: 'c' } };
    const nested = {
      taskId: 't1',
      pushNotificationConfig: { id: 'p1', url: 'u', token: 't', authentication: { schemes: ['B'], credentials: 'c' } },
    };
    const params = { taskId: 't1', id: 'p1' };
    expect(encodeResult({ name: 'GetTaskPushNotificationConfig', params }, config)).toStrictEqual(nested);
    expect(
      encodeResult({ name: 'ListTaskPushNotificationConfigs', params }, { configs: [config], nextPageToken: '' }),
    ).toStrictEqual([nested]);
    expect(encodeResult({ name: 'DeleteTaskPushNotificationConfig', params }, undefined)).toBeNull();
    expect(encodeResult({ name: 'GetTaskPushNotificationConfig', params }, { taskId: 't1', url: 'u' })).toStrictEqual({
      taskId: 't1',
      pushNotificationConfig: { url: 'u' },
    });
  });

  it('answers a request with async with the state working', () =>
    expect(encodeResult(send({ answerAs: 'working' }), { task })).toMatchObject({
      id: 't1',
      status: { state: 'working', timestamp: '2026-01-01T00:00:00.000Z' },
    }));

  it('has the same meaning for the official SDK', () => {
    const events: StreamResponse[] = [
      { task },
      { message: question },
      { statusUpdate: { taskId: 't1', contextId: 'c1', status: task.status, metadata: { k: 1 } } },
      {
        artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: task.artifacts![0]!, append: true, lastChunk: true },
      },
    ];
    for (const event of events) {
      const read = legacyPushNotificationToV1StreamResponse(encodeEvent(event));
      expect(SdkStreamResponse.toJSON(read)).toMatchObject(event);
    }
    const data: Message = { ...question, parts: [{ data: [1, null] }] };
    expect(
      SdkStreamResponse.toJSON(legacyPushNotificationToV1StreamResponse(encodeEvent({ message: data }))),
    ).toMatchObject({ message: { parts: data.parts } });
  });
});

describe("Reyn's superset", () => {
  it('(N12) adds the facts of the run to the Task, with the status of the run and the Task under `task`', () =>
    expect(encodeResult(send({ reyn: { isAnswer: false } }), { task }, { agentName: 'echo' })).toStrictEqual({
      ...older,
      status: 'input-required',
      task: older,
      run_id: 't1',
      question: 'Which one?',
      result: null,
      error: null,
      agent_name: 'echo',
    }));

  it('reports whether the agent accepted an answer', () => {
    const answer = send({ reyn: { isAnswer: true } });
    expect(encodeResult(answer, { task })).toMatchObject({ kind: 'task', task_id: 't1', answered: true });
    expect(encodeResult(answer, { task, answered: false, reason: 'not waiting' })).toMatchObject({
      task_id: 't1',
      answered: false,
      reason: 'not waiting',
      status: 'input-required',
      task: { status: { state: 'input-required' } },
    });
    expect(encodeResult(answer, { message: question }, { agentName: 'echo' })).toStrictEqual({
      ...older.status.message,
      agent_name: 'echo',
      task_id: 't1',
      answered: true,
    });
  });
});
