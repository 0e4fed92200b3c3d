import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { mayHaveArrived } from '../../platform/http/outbound/departed.js';
import { dispatchedSkill } from '../../registry/own-routing.js';
import type { TaskRun, TaskUpdate } from '../../tasks/executor.port.js';

export const working = { status: { state: 'TASK_STATE_WORKING' } } as const satisfies TaskUpdate;

/** Which of the messages of its caller a run of a task answers, counted from 0. */
export function turnOf({ task, message }: Pick<TaskRun, 'task' | 'message'>): number {
  return task.history.filter(({ role }) => role === 'ROLE_USER').indexOf(message);
}

/** The skill that the message asks for, else the one that was chosen for a message that named no agent. */
export function skillOf({ task, message }: Pick<TaskRun, 'task' | 'message'>): string | undefined {
  const asked = message.metadata?.skillId;
  return typeof asked === 'string' ? asked : dispatchedSkill(task.metadata);
}

/** Whether a tool may be called again when nobody knows whether it was called: its server says so (MCP, tool annotations). */
export function mayRepeat({ annotations }: JsonObject): boolean {
  return isJsonObject(annotations) && (annotations.readOnlyHint === true || annotations.idempotentHint === true);
}

/** What must not be done twice is not done again when nobody knows whether it was done; nor does its key get free (R3). */
export function outcomeUnknown(tool: string, why: string, cause?: unknown): RialtoError {
  return new RialtoError('outcome_unknown', {
    message: `the outcome is unknown: ${why}, and the tool "${tool}" is not called again, because it may have taken effect`,
    data: { ambiguous: true, tool },
    cause,
  });
}

/** Why the outcome is unknown after a process of ours was killed in the middle of a call. */
export const callerLost = 'the process that called it was lost before the answer';

/** Whether a call failed after it may have reached its server, which gave no answer to it. */
export function isUnanswered(error: RialtoError): boolean {
  if (error.code === 'remote_timeout') return true;
  return error.code === 'remote_transport' && error.data?.upstreamStatus === undefined && mayHaveArrived(error);
}

/** A server that cannot be called now fails the call: waiting for it would look like a call that was lost. */
export function asFailure(thrown: unknown): RialtoError {
  const error = RialtoError.from(thrown);
  const isOfLine = error.data?.server !== undefined || error.data?.retryAfterSeconds !== undefined;
  if (error.code !== 'unavailable' || !isOfLine) return error;
  return new RialtoError('remote_transport', { message: error.message, data: error.data, cause: error });
}
