import type { Message, StreamResponse, Task, TaskStatus } from '../../protocol/a2a/model.js';
import { interruptedStates, type TaskState } from '../../protocol/a2a/states.js';
import { foldArtifacts } from '../../protocol/a2a/artifacts.js';

/** What is kept of a task only in its row. */
export interface TaskFacts {
  readonly id: string;
  readonly agentName: string;
  readonly contextId: string;
  /** As it is now. */
  readonly history: readonly Message[];
  readonly metadata?: Task['metadata'];
}

/** A task as it was after one of its events. */
export interface Past {
  readonly status: TaskStatus;
  /** The state before this event; absent at the first. */
  readonly stateBefore?: TaskState;
  readonly artifacts: NonNullable<Task['artifacts']>;
  /** How many messages of its history there were. */
  readonly messages: number;
}

export const beginning: Past = { status: { state: 'TASK_STATE_UNSPECIFIED' }, artifacts: [], messages: 0 };

/** The next event of the log applied. `history` tells whether the caller's answer came with it, for it is no event itself. */
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
  const said = past.messages + (past.status.message ? 1 : 0);
  const isAnswered = interruptedStates.has(state) && history[said]?.role === 'ROLE_USER';
  return { ...past, status, stateBefore: state, messages: said + (isAnswered ? 1 : 0) };
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
