import { StreamResponse as SdkStreamResponse, Task as SdkTask } from '@a2a-js/sdk';
import type { Message, Task } from '../model.js';
import type { Operation } from '../request/operations.js';
import { encodeEvent, encodeResult } from './encode.js';

const answer: Message = {
  messageId: 'm2',
  contextId: 'c1',
  taskId: 't1',
  role: 'ROLE_AGENT',
  parts: [{ data: null }, { text: 'x', mediaType: 'text/plain' }],
};
const task: Task = {
  id: 't1',
  contextId: 'c1',
  status: { state: 'TASK_STATE_COMPLETED', message: answer, timestamp: '2026-01-01T00:00:00.000Z' },
  artifacts: [{ artifactId: 'a1', parts: [{ raw: 'aGk=', filename: 'a.txt' }], metadata: { k: [null] } }],
  history: [answer],
  metadata: { own_key: null },
};
const operation = { name: 'GetTask', params: { id: 't1' } } as const satisfies Operation;

describe('the v1.0 encoding', () => {
  it('returns the canonical object itself when nothing must be removed', () => {
    expect(encodeResult(operation, task)).toBe(task);
    const event = { statusUpdate: { taskId: 't1', contextId: 'c1', status: task.status } };
    expect(encodeEvent(event)).toBe(event);
  });

  it('removes members that v1.0 does not define, at every depth, and keeps free JSON', () => {
    const inner = { ...answer, epoch: 1, parts: [{ text: 'x', note: 1 }, { data: null }], taskId: undefined };
    const stored = { ...task, owner_id: 'o', status: { ...task.status, message: inner, epoch: 2 }, history: undefined };
    const encoded = encodeResult(operation, stored as unknown as Task);
    expect(encoded).toStrictEqual({
      id: 't1',
      contextId: 'c1',
      status: {
        state: 'TASK_STATE_COMPLETED',
        message: {
          messageId: 'm2',
          contextId: 'c1',
          role: 'ROLE_AGENT',
          parts: [{ text: 'x' }, { data: null }],
        },
        timestamp: '2026-01-01T00:00:00.000Z',
      },
      artifacts: task.artifacts,
      metadata: { own_key: null },
    });
  });

  it('has null only in free JSON', () =>
    expect(encodeResult(operation, { ...task, contextId: null, artifacts: null } as unknown as Task)).toStrictEqual({
      id: 't1',
      status: task.status,
      history: [answer],
      metadata: { own_key: null },
    }));

  it('wraps the answer to a send', () => {
    const send: Operation = { name: 'SendMessage', params: { message: answer, reyn: { isAnswer: true } } };
    expect(encodeResult(send, { task, answered: false, reason: 'no' })).toStrictEqual({ task });
    expect(encodeResult(send, { message: answer })).toStrictEqual({ message: answer });
  });

  it('pages tasks', () => {
    const page = { tasks: [{ ...task, artifacts: [] }], nextPageToken: '', pageSize: 50, totalSize: 1 };
    const list: Operation = { name: 'ListTasks', params: { pageSize: 50, includeArtifacts: true } };
    expect(encodeResult(list, page)).toBe(page);
  });

  it('shows push configurations without the members of the gateway', () => {
    const config = { id: 'p1', taskId: 't1', url: 'https://a.example', authentication: { scheme: 'B', kept: 1 } };
    const stored = { ...config, format: 'v1' };
    const shown = { id: 'p1', taskId: 't1', url: 'https://a.example', authentication: { scheme: 'B' } };
    expect(
      encodeResult({ name: 'GetTaskPushNotificationConfig', params: { taskId: 't1', id: 'p1' } }, stored),
    ).toStrictEqual(shown);
    expect(
      encodeResult({ name: 'ListTaskPushNotificationConfigs', params: { taskId: 't1' } }, { configs: [stored] }),
    ).toStrictEqual({ configs: [shown], nextPageToken: '' });
  });

  it('answers a deletion with an empty object, and passes cards through', () => {
    const card = { name: 'a', x: { y: 1 } };
    expect(
      encodeResult({ name: 'DeleteTaskPushNotificationConfig', params: { taskId: 't', id: 'p' } }, undefined),
    ).toStrictEqual({});
    expect(encodeResult({ name: 'GetExtendedAgentCard', params: {} }, card)).toBe(card);
  });

  it('has the same meaning for the official SDK', () => {
    const { status, artifacts, history, ...rest } = SdkTask.toJSON(
      SdkTask.fromJSON(encodeResult(operation, task)),
    ) as Task;
    // The SDK writes empty lists, and reads a null in a data part as missing content.
    expect(rest).toEqual({ id: 't1', contextId: 'c1', metadata: task.metadata });
    expect(status).toMatchObject({ state: 'TASK_STATE_COMPLETED', timestamp: task.status.timestamp });
    expect(artifacts).toEqual([expect.objectContaining(task.artifacts![0]!)]);
    expect(history![0]).toMatchObject({ messageId: 'm2', role: 'ROLE_AGENT', parts: [{}, answer.parts[1]] });
    const event = { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact: task.artifacts![0]!, append: true } };
    expect(SdkStreamResponse.toJSON(SdkStreamResponse.fromJSON(encodeEvent(event)))).toMatchObject(event);
  });
});
