import { callerOf, type CallContext } from '../../kernel/call-context.js';

/**
 * The owner that a caller is limited to: undefined for an admin, who sees all of the org; the caller itself otherwise.
 */
export function ownerSeenBy({ principal }: CallContext): string | undefined {
  return principal.role === 'admin' ? undefined : callerOf(principal);
}

/**
 * SQL condition on a row with a task id: the task belongs to the parameter `owner`, or that is null. A scalar subquery,
 * because it costs exactly one look-up in the primary key of tasks for each row; the planner may choose worse for a
 * join or `exists`. A row with a deleted task matches no owner.
 */
export const isOfOwner = (taskId: string): string =>
  `(:owner::text is null or (select t.owner from a2a_tasks t where t.id = ${taskId}) = :owner)`;
