import type { Message, Task } from '../model.js';
import type { TaskState } from '../states.js';
import { isPaused } from './paused.js';

/** The eight states of a conversation. */
export const conversationStates = [
  'submitted',
  'open',
  'paused',
  'input_required',
  'completed',
  'failed',
  'canceled',
  'rejected',
] as const;
export type ConversationState = (typeof conversationStates)[number];

const states: Readonly<Record<TaskState, ConversationState>> = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'open',
  TASK_STATE_UNSPECIFIED: 'open',
  TASK_STATE_INPUT_REQUIRED: 'input_required',
  TASK_STATE_AUTH_REQUIRED: 'input_required',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_REJECTED: 'rejected',
};

/** The state of a conversation, from the status of its newest task (RI-02, RI-29 to RI-36). */
export function conversationState({ state, message }: Pick<Task['status'], 'state' | 'message'>): ConversationState {
  const shown = states[state];
  return shown === 'open' && isPaused(message) ? 'paused' : shown;
}

/** The task states that a conversation in this state can have. */
export function taskStatesOf(state: ConversationState): readonly TaskState[] {
  const wanted = state === 'paused' ? 'open' : state;
  return (Object.keys(states) as TaskState[]).filter(
    (each) => states[each] === wanted && each !== 'TASK_STATE_UNSPECIFIED',
  );
}

/**
 * The messages of a task in their order: its history, then the message of its status. An agent that answered with
 * artifacts alone gets a message with their parts.
 */
export function messagesOf({ id, contextId, status, history = [], artifacts = [] }: Task): Message[] {
  if (status.message) return [...history, status.message];
  const parts = artifacts.flatMap((artifact) => artifact.parts);
  if (parts.length === 0) return history;
  return [...history, { messageId: `${id}-artifacts`, taskId: id, contextId, role: 'ROLE_AGENT', parts }];
}
