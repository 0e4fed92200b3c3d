import { RialtoError } from '../../kernel/errors.js';
import { isEncrypted } from '../../protocol/a2a/encrypted-parts.js';
import { encrypted } from '../../protocol/a2a/media-types.js';
import { dispatchedSkill } from '../../registry/own-routing.js';
import type { TaskRun, TaskUpdate } from '../../tasks/executor.port.js';

export const working = { status: { state: 'TASK_STATE_WORKING' } } as const satisfies TaskUpdate;

/** Returns the index of the caller's message that this run answers, counted from 0. */
export function turnOf({ task, message }: Pick<TaskRun, 'task' | 'message'>): number {
  return task.history.filter(({ role }) => role === 'ROLE_USER').indexOf(message);
}

/** Returns the skill that the message names, else the one that was chosen for a message without an agent. */
export function skillOf({ task, message }: Pick<TaskRun, 'task' | 'message'>): string | undefined {
  const skillId = message.metadata?.skillId;
  return typeof skillId === 'string' ? skillId : dispatchedSkill(task.metadata);
}

/**
 * Throws `content_type_not_supported` for an encrypted message: the executor changed after the gateway accepted it.
 */
export function requireCleartext({ message }: Pick<TaskRun, 'message'>): void {
  if (isEncrypted(message.parts))
    throw new RialtoError('content_type_not_supported', { message: `this agent does not take ${encrypted}` });
}
