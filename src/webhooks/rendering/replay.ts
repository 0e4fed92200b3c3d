import type { Message, StreamResponse, Task, TaskStatus } from '../../protocol/a2a/model.js';
import { interruptedStates, type TaskState } from '../../protocol/a2a/states.js';
import { foldArtifacts } from '../../protocol/a2a/artifacts.js';

/** The parts of a task that only its row has, not its log. */
export interface TaskFacts {
  readonly id: string;
  readonly agentName: string;
  readonly contextId: string;
  /** The current history. */
  readonly history: readonly Message[];
  readonly metadata?: Task['metadata'];
}

/** A task as it was after one of its events. */
export interface Past {
  readonly status: TaskStatus;
  /** The state before this event; absent for the first event. */
  readonly stateBefore?: TaskState;
  readonly artifacts: NonNullable<Task['artifacts']>;
  /** Number of messages in its history at that time. */
  readonly messages: number;
}

export const beginning: Past = { status: { state: 'TASK_STATE_UNSPECIFIED' }, artifacts: [], messages: 0 };

/**
 * Applies the next event of the log. `history` shows whether the caller's answer came with it, because an answer is not
 * an event.
 */
export function replay(past: Past, event: StreamResponse, history: readonly Message[]): Past {
  const { state } = past.status;
  if ('task' in event)
    return {
      status: event.task.status,
      artifacts: event.task.artifacts ?? [],
      messages: event.task.history?.length ?? 0,
    };
  if (!('statusUpdate' in event))
    return { ...past, stateBefore: state, artifacts: foldArtifacts(past.artifacts, [event]) };
  const { status } = event.statusUpdate;
  const count = past.messages + (past.status.message ? 1 : 0);
  const isAnswered = interruptedStates.has(state) && history[count]?.role === 'ROLE_USER';
  return { ...past, status, stateBefore: state, messages: count + (isAnswered ? 1 : 0) };
}

export function taskAt({ status, artifacts, messages }: Past, { id, contextId, history, metadata }: TaskFacts): Task {
  return {
    id,
    contextId,
    status,
    artifacts,
    history: history.slice(0, messages),
    ...(metadata && { metadata }),
  };
}
