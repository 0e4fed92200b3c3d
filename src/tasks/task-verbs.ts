import { callerOf, type CallContext } from '../kernel/call-context.js';
import type { JsonObject } from '../kernel/json.js';
import { cleartextFacts, trustTierOf, type MessageFacts } from '../kernel/trust.js';
import type { VerbCall } from '../kernel/verb-bus.js';
import type { Action } from '../kernel/verbs.js';
import { encryptedBytes, isEncrypted } from '../protocol/a2a/encrypted-parts.js';
import type { Message } from '../protocol/a2a/model.js';
import { messageArgs } from '../protocol/a2a/request/message-args.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { type StoredTask } from './task.types.js';

/** Returns the facts that policies see of a message besides its arguments. Cleartext is always of tier 0 (RI-07). */
export function messageFacts({ org, principal }: CallContext, { parts }: Pick<Message, 'parts'>): MessageFacts {
  if (!isEncrypted(parts)) return cleartextFacts;
  const trustTier = principal.kind === 'anonymous' ? 0 : trustTierOf(org);
  return { encrypted: true, encryptedBytes: encryptedBytes(parts), trustTier };
}

/** The act of sending a message to a published agent. */
export function submission(ctx: CallContext, agent: PublishedAgent): VerbCall {
  return { ctx, verb: agent.name, action: 'task_submit', resource: { type: 'PublishedAgent', id: agent.name } };
}

/**
 * The act of sending this message to a published agent.
 * @param content what an approver sees and approves.
 */
export function messageSubmission(
  ctx: CallContext,
  agent: PublishedAgent,
  sent: Pick<Message, 'parts' | 'metadata'>,
  content: JsonObject,
): VerbCall {
  const { args, unclear } = messageArgs(sent);
  const target = { id: agent.id, executor: agent.executor as unknown as JsonObject };
  return { ...submission(ctx, agent), target, args, message: { ...messageFacts(ctx, sent), unclear }, content };
}

/** An act on a stored task. */
export function onTask(
  ctx: CallContext,
  action: Extract<Action, 'task_read' | 'task_cancel' | 'task_subscribe' | 'push_configure'>,
  task: StoredTask,
): VerbCall {
  const { kind, id } = task.principal;
  return {
    ctx,
    verb: task.agentName,
    action,
    resource: { type: 'Task', id: task.id },
    task: { agent: task.agentName, owner: { kind, id } },
    sessionId: task.id,
  };
}

/** The act of configuring push notifications for a task that does not exist yet. */
export function configuring(ctx: CallContext, { name }: PublishedAgent): VerbCall {
  const { kind, id } = ctx.principal;
  const task = { agent: name, owner: { kind, id } };
  return { ctx, verb: name, action: 'push_configure', resource: { type: 'Task', id: 'new' }, task };
}

/** The name of a published agent in the lineage of calls. */
export function placeOf({ id }: Pick<PublishedAgent, 'id'>): string {
  return `published:${id}`;
}

/** True when this caller may see the task: it is the caller's own, or the caller is an admin of its org. */
export function maySee({ org, principal }: CallContext, task: StoredTask): boolean {
  if (task.orgId !== org.id) return false;
  return principal.role === 'admin' || callerOf(principal) === callerOf(task.principal);
}

/**
 * The caller context of an external worker. All workers of an agent share one principal, so the limits count them as
 * one caller.
 */
export function workerFor({ id, org }: Pick<PublishedAgent, 'id' | 'org'>, requestId: string): CallContext {
  const principal = { kind: 'service', id: `published:${id}`, role: 'viewer', groups: [] } as const;
  return { org, principal, surface: 'rest', requestId, depth: 0 };
}

/**
 * The lineage and trace of the call that created a task. The task stores them for work that continues after the call.
 */
export function originOf({ lineage, trace }: Pick<CallContext, 'lineage' | 'trace'>): Pick<StoredTask, 'lineage'> {
  if (!lineage && !trace) return {};
  return { lineage: { ...lineage, path: lineage?.path ?? [], ...(trace && { trace }) } };
}
