import { redact } from '../../platform/secrets/redact.js';
import type { Part } from '../../protocol/a2a/model.js';
import type { Said, TaskUpdate } from '../../tasks/executor.port.js';
import { emptyText, failureText, type FailureIds } from './continuation-plan.js';

type StatusUpdate = Extract<TaskUpdate, { status: unknown }>;

/** Facts that identify the end of a remote task for its readers. */
export interface EndFacts extends Omit<FailureIds, 'code'> {
  /** Name for people, e.g. `agent weather`. */
  readonly who: string;
  /** True when the remote sent neither artifacts nor text before the end. */
  readonly isEmpty: boolean;
}

/**
 * Converts the end of a remote task into the end of the task here. An end without content gets a text that says so
 * (AN-72). A failure gets ids to search for, and the text of the remote without secrets (AN-73). Pure.
 */
export function endTold(update: StatusUpdate | { readonly reply: Said }, facts: EndFacts): StatusUpdate {
  if ('reply' in update) return endTold({ status: { state: 'TASK_STATE_COMPLETED', message: update.reply } }, facts);
  const { state, message } = update.status;
  if (state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED') {
    const text = partsText(message?.parts ?? []) || `The ${facts.who} failed its task.`;
    return { status: { state, message: failureSaid(text, 'remote_task_failed', facts, message) } };
  }
  if (state === 'TASK_STATE_CANCELED' && message?.metadata?.errorCode !== undefined) {
    const { errorCode: _remoteCode, ...metadata } = message.metadata;
    return { ...update, status: { state, message: { ...message, metadata } } };
  }
  const isSilent = state === 'TASK_STATE_COMPLETED' && facts.isEmpty && (message?.parts ?? []).length === 0;
  return isSilent ? { status: { state, message: { parts: [{ text: emptyText(facts.who) }] } } } : update;
}

/** Message of a failure: the text without secrets, and the ids as text and as metadata for programs. */
export function failureSaid(words: string, code: string, facts: EndFacts, reply?: Said): Said {
  const { requestId, continuationId, taskId } = facts;
  const text = failureText(redact(words) as string, { code, requestId, continuationId, taskId });
  const others = (reply?.parts ?? []).filter((part) => part.text === undefined);
  const ids = { errorCode: code, requestId, continuationId, remoteTaskId: taskId };
  return { parts: [{ text }, ...others], metadata: { ...reply?.metadata, ...ids } };
}

function partsText(parts: readonly Part[]): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n');
}
