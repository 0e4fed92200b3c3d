import { redact } from '../../platform/secrets/redact.js';
import type { Part } from '../../protocol/a2a/model.js';
import type { Said, TaskUpdate } from '../../tasks/executor.port.js';
import { emptyText, failureText, type FailureIds } from './continuation-plan.js';

type StatusUpdate = Extract<TaskUpdate, { status: unknown }>;

/** Which end it is, for whoever reads it. */
export interface EndFacts extends Omit<FailureIds, 'code'> {
  /** For people, e.g. `agent weather`. */
  readonly who: string;
  /** Neither artifacts nor words came before. */
  readonly isEmpty: boolean;
}

/**
 * The end of a remote task as it is told here: an empty one says so (AN-72), a failure names what to look for and no secret that
 * the remote put into its words (AN-73). Pure.
 */
export function endTold(update: StatusUpdate | { readonly reply: Said }, facts: EndFacts): StatusUpdate {
  if ('reply' in update) return endTold({ status: { state: 'TASK_STATE_COMPLETED', message: update.reply } }, facts);
  const { state, message } = update.status;
  if (state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED') {
    const words = textOf(message?.parts ?? []) || `The ${facts.who} failed its task.`;
    return { status: { state, message: failureSaid(words, 'remote_task_failed', facts, message) } };
  }
  if (state === 'TASK_STATE_CANCELED' && message?.metadata?.errorCode !== undefined) {
    const { errorCode: _itsOwn, ...metadata } = message.metadata;
    return { ...update, status: { state, message: { ...message, metadata } } };
  }
  const isSilent = state === 'TASK_STATE_COMPLETED' && facts.isEmpty && (message?.parts ?? []).length === 0;
  return isSilent ? { status: { state, message: { parts: [{ text: emptyText(facts.who) }] } } } : update;
}

/** The words of a failure, without secrets, and its ids, also for programs. */
export function failureSaid(words: string, code: string, facts: EndFacts, said?: Said): Said {
  const { requestId, continuationId, taskId } = facts;
  const text = failureText(redact(words) as string, { code, requestId, continuationId, taskId });
  const others = (said?.parts ?? []).filter((part) => part.text === undefined);
  const ids = { errorCode: code, requestId, continuationId, remoteTaskId: taskId };
  return { parts: [{ text }, ...others], metadata: { ...said?.metadata, ...ids } };
}

function textOf(parts: readonly Part[]): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n');
}
