import type { JsonObject } from '../../../kernel/json.js';
import type { Message, Task } from '../model.js';
import type { TaskState } from '../states.js';
import { conversationState, conversationStates, messagesOf, taskStatesOf } from './conversation.js';
import { isPausedWord, keepPause, pausedMessage } from './paused.js';

describe('conversations', () => {
  const said = (text: string): Message => ({ messageId: text, role: 'ROLE_AGENT', parts: [{ text }] });

  it('maps every state of a task to one of the eight states', () => {
    const mapped = conversationStates.map((state) => [state, taskStatesOf(state)]);
    expect(mapped).toEqual([
      ['submitted', ['TASK_STATE_SUBMITTED']],
      ['open', ['TASK_STATE_WORKING']],
      ['paused', ['TASK_STATE_WORKING']],
      ['input_required', ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED']],
      ['completed', ['TASK_STATE_COMPLETED']],
      ['failed', ['TASK_STATE_FAILED']],
      ['canceled', ['TASK_STATE_CANCELED']],
      ['rejected', ['TASK_STATE_REJECTED']],
    ]);
    for (const [state, tasks] of mapped as [string, TaskState[]][])
      for (const task of tasks) expect(conversationState({ state: task })).toBe(state === 'paused' ? 'open' : state);
    expect(conversationState({ state: 'TASK_STATE_UNSPECIFIED' })).toBe('open');
  });

  it('shows a pause only while the task is working', () => {
    const message = pausedMessage(said('later'));
    expect(conversationState({ state: 'TASK_STATE_WORKING', message })).toBe('paused');
    expect(conversationState({ state: 'TASK_STATE_COMPLETED', message })).toBe('completed');
    expect(conversationState({ state: 'TASK_STATE_WORKING', message: said('on it') })).toBe('open');
  });

  it('reads the word of a remote agent, and keeps its message', () => {
    expect(['paused', 'PAUSED', 'TASK_STATE_PAUSED', 'unpaused', 'pausedX'].map(isPausedWord)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    const own = { state: 'paused', message: { parts: [{ text: 'lunch' }], metadata: { a: 1 } } };
    keepPause(own, '0.3');
    expect(own.message).toEqual({ parts: [{ text: 'lunch' }], metadata: { a: 1, paused: true } });
    const bare: JsonObject = { state: 'paused' };
    keepPause(bare, '1.0');
    expect(bare.message).toMatchObject({ role: 'ROLE_AGENT', metadata: { paused: true } });
    const working = { state: 'working' };
    keepPause(working, '0.3');
    expect(working).toEqual({ state: 'working' });
  });

  it('lists the history and the answer of a task', () => {
    const task: Task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, history: [said('hi')] };
    expect(messagesOf(task)).toEqual([said('hi')]);
    expect(messagesOf({ ...task, status: { ...task.status, message: said('bye') } })).toEqual([
      said('hi'),
      said('bye'),
    ]);
    expect(messagesOf({ ...task, artifacts: [{ artifactId: 'a', parts: [{ text: '42' }] }] })[1]).toEqual({
      messageId: 't-artifacts',
      taskId: 't',
      contextId: 'c',
      role: 'ROLE_AGENT',
      parts: [{ text: '42' }],
    });
  });
});
