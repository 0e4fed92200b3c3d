import { artifactText } from '../../protocol/a2a/artifact-text.js';
import type { Part } from '../../protocol/a2a/model.js';
import type { TaskState } from '../../protocol/a2a/states.js';
import type { SendReply } from '../transports/send-reply.js';
import { A2AClientError, type A2AClientErrorCode } from './client-errors.js';

const maxLength = 32_768;
const tailLength = 8_192;
const failures: Partial<Record<TaskState, A2AClientErrorCode>> = {
  TASK_STATE_FAILED: 'a2a_task_failed',
  TASK_STATE_CANCELED: 'a2a_task_canceled',
  TASK_STATE_REJECTED: 'a2a_task_rejected',
};

/**
 * Returns the text of an answer (AN-26): the last artifact with text, else the status message, else the agent's last
 * message. For a task that waits for input it is the status message first. Throws `a2a_task_failed`, `…_canceled` or
 * `…_rejected` with the text of the remote agent, and `empty_agent_response` when there is no text (AN-36).
 */
export function replyText(reply: SendReply): string {
  if ('message' in reply) return notEmpty(messageText(reply.message.parts), {});
  const { task } = reply;
  const facts = { taskId: task.id, contextId: task.contextId };
  const statusText = task.status.message ? messageText(task.status.message.parts) : '';
  const failure = failures[task.status.state];
  if (failure) throw new A2AClientError(failure, statusText || `the remote task ended: ${failure}`, facts);
  const produced = lastText((task.artifacts ?? []).map(({ parts }) => artifactText(parts, dataText).trim()));
  const messages = (task.history ?? [])
    .filter(({ role }) => role === 'ROLE_AGENT')
    .map(({ parts }) => messageText(parts));
  const isEnded = task.status.state === 'TASK_STATE_COMPLETED';
  return notEmpty(
    isEnded ? produced || statusText || lastText(messages) : statusText || produced || lastText(messages),
    facts,
  );
}

/**
 * Cuts a text to 32,768 characters: the beginning, a line that states how many are missing, and the last 8,192
 * (AN-37).
 */
export function capped(text: string): string {
  if (text.length <= maxLength) return text;
  const note = (missing: number) => `\n[… ${missing} characters left out …]\n`;
  const headLength = maxLength - tailLength - note(text.length).length;
  const missing = text.length - headLength - tailLength;
  return `${text.slice(0, headLength)}${note(missing)}${text.slice(-tailLength)}`.toWellFormed();
}

function lastText(texts: string[]): string {
  return texts.findLast((text) => text !== '') ?? '';
}

/** Joins the texts of a message: text parts as they are, data parts as JSON, one for each line. */
function messageText(parts: Part[]): string {
  const texts = parts.flatMap((part) => part.text ?? dataText(part) ?? []);
  return texts.join('\n').trim();
}

function dataText({ data }: Part): string | undefined {
  return data === undefined ? undefined : JSON.stringify(data);
}

function notEmpty(text: string, facts: { taskId?: string; contextId?: string }): string {
  if (text !== '') return capped(text);
  throw new A2AClientError('empty_agent_response', 'the remote agent answered without any text', facts);
}
