import type { Message } from '../../protocol/a2a/model.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import type { TaskRun } from '../../tasks/executor.port.js';

/** What a later run has to know of the remote task. */
export interface RemoteMemo {
  readonly taskId: string;
  readonly contextId?: string;
  /** The newest message of ours that the remote has. */
  readonly messageId: string;
}

export function memoOf({ task }: Pick<TaskRun, 'task'>): RemoteMemo | undefined {
  return task.memo === undefined ? undefined : (task.memo as unknown as RemoteMemo);
}

/** Of the message that a task was opened with, as the remote has it. */
export function firstOutwardId(taskId: string): string {
  return `${taskId}-0`;
}

/** The same for every try of one message, so that a remote that keeps count takes it once. */
export function outwardId({ task, message }: Pick<TaskRun, 'task' | 'message'>): string {
  const turn = task.history.filter(({ role }) => role === 'ROLE_USER').indexOf(message);
  return `${task.id}-${turn}`;
}

/**
 * The caller's message as ours to the remote: its ids belong to this gateway and stay in it.
 *
 * @param references the tasks that it refers to, by the ids that the remote gave them.
 */
export function outward(
  run: TaskRun,
  skillId: string,
  memo: RemoteMemo | undefined,
  references: readonly string[] = [],
): Message {
  const { parts, metadata, extensions } = run.message;
  return {
    messageId: outwardId(run),
    role: 'ROLE_USER',
    parts,
    metadata: { ...metadata, skillId },
    ...(extensions && { extensions }),
    ...(references.length > 0 && { referenceTaskIds: [...references] }),
    ...(memo && { taskId: memo.taskId, ...(memo.contextId !== undefined && { contextId: memo.contextId }) }),
  };
}

/** The remote task that an event is of; undefined for a message. */
export function handleOf(event: StreamResponse): { taskId: string; contextId?: string } | undefined {
  if ('task' in event)
    return { taskId: event.task.id, ...(event.task.contextId && { contextId: event.task.contextId }) };
  if ('message' in event) return undefined;
  const { taskId, contextId } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
  return { taskId, contextId };
}
