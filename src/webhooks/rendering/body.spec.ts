import type { StreamResponse, Task } from '../../protocol/a2a/model.js';
import { eventBody, mediaTypeOf, taskBody } from './body.js';

const at = '2026-01-31T12:00:00.000Z';
const status = { state: 'TASK_STATE_WORKING', timestamp: at } as const;
const task: Task = { id: 't', contextId: 'c', status, artifacts: [], history: [] };
const working: StreamResponse = { statusUpdate: { taskId: 't', contextId: 'c', status } };
const chunk: StreamResponse = {
  artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } },
};
const happened = { event: working, seq: 2, task, agentName: 'echo' };
const read = (text: string | undefined): unknown => text && JSON.parse(text);

describe('the body of a webhook', () => {
  it('is a StreamResponse for v1.0', () => {
    expect(read(eventBody('v1', working))).toEqual(working);
    expect(read(eventBody('v1', chunk))).toEqual(chunk);
    expect(mediaTypeOf('v1')).toBe('application/a2a+json');
  });

  it('is the bare event for v0.3', () => {
    expect(read(eventBody('v0.3', working))).toEqual({
      kind: 'status-update',
      taskId: 't',
      contextId: 'c',
      status: { state: 'working', timestamp: at },
      final: false,
    });
    expect(mediaTypeOf('v0.3')).toBe('application/json');
  });

  it('(N14) RI-40 is the whole task when the format asks for it, once for each state and not for each artifact', () => {
    const expected = { kind: 'task', id: 't', contextId: 'c', status: { state: 'working', timestamp: at } };
    expect(read(taskBody('task', { ...happened, stateBefore: 'TASK_STATE_SUBMITTED' }))).toMatchObject(expected);
    for (const event of [working, chunk])
      expect(taskBody('task', { ...happened, event, stateBefore: 'TASK_STATE_WORKING' })).toBeUndefined();
  });

  it('is the change of the run for Reyn, once for each state', () => {
    const view = { run_id: 't', status: 'running', agent_name: 'echo', progress: 2 };
    expect(read(taskBody('reyn', { ...happened, stateBefore: 'TASK_STATE_SUBMITTED' }))).toMatchObject(view);
    expect(read(taskBody('reyn', { ...happened, stateBefore: 'TASK_STATE_INPUT_REQUIRED' }))).toMatchObject(view);
    expect(taskBody('reyn', { ...happened, stateBefore: 'TASK_STATE_WORKING' })).toBeUndefined();
    expect(taskBody('reyn', { ...happened, event: chunk, stateBefore: 'TASK_STATE_WORKING' })).toBeUndefined();
  });
});
