import type { Message } from '../../protocol/a2a/model.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import type { TaskRun } from '../../tasks/executor.port.js';

/** Facts about the remote task that a later run needs. */
export interface RemoteMemo {
  readonly taskId: string;
  readonly contextId?: string;
  /** Id of the newest message that the gateway sent and the remote has. */
  readonly messageId: string;
}

export function memoOf({ task }: Pick<TaskRun, 'task'>): RemoteMemo | undefined {
  return task.memo === undefined ? undefined : (task.memo as unknown as RemoteMemo);
}

/** Id that the first message of a task has at the remote. */
export function firstOutwardId(taskId: string): string {
  return `${taskId}-0`;
}

/**
 * Id of a message at the remote. All attempts to send one message use the same id, so that a remote that removes
 * duplicates takes it once.
 */
export function outwardId({ task, message }: Pick<TaskRun, 'task' | 'message'>): string {
  const turn = task.history.filter(({ role }) => role === 'ROLE_USER').indexOf(message);
  return `${task.id}-${turn}`;
}

/**
 * Builds the message to the remote from the message of the caller. The ids of the caller belong to this gateway and
 * are not sent.
 *
 * @param references ids that the remote gave to the tasks that the message refers to.
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

/** Ids of the remote task that an event belongs to; undefined for a message. */
export function handleOf(event: StreamResponse): { taskId: string; contextId?: string } | undefined {
  if ('task' in event)
    return { taskId: event.task.id, ...(event.task.contextId && { contextId: event.task.contextId }) };
  if ('message' in event) return undefined;
  const { taskId, contextId } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
  return { taskId, contextId };
}
