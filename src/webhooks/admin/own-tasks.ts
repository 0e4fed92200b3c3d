import type { CallContext } from '../../kernel/call-context.js';
import { ownerOf } from '../../tasks/task.types.js';

/** Whose tasks a caller sees the webhooks of: undefined for an admin, who sees those of the org; everyone else sees their own. */
export function ownerSeenBy({ principal }: CallContext): string | undefined {
  return principal.role === 'admin' ? undefined : ownerOf(principal);
}

/**
 * The condition on a row with a task: any when the parameter is null. One look into the key of tasks for a row that is read, and no more,
 * which a join or `exists` would leave to the planner. What has lost its task is nobody's own.
 */
export const isOfOwner = (parameter: string, taskId: string): string =>
  `(${parameter}::text is null or (select t.owner from a2a_tasks t where t.id = ${taskId}) = ${parameter})`;
