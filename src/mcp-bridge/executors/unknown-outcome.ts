import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { mayHaveArrived } from '../../platform/http/outbound/departed.js';

/**
 * True when a tool may be called again after a call with an unknown outcome: its server declares this (MCP, tool
 * annotations).
 */
export function mayRepeat({ annotations }: JsonObject): boolean {
  return isJsonObject(annotations) && (annotations.readOnlyHint === true || annotations.idempotentHint === true);
}

/**
 * Builds the error for a call that must not be repeated although its outcome is unknown; its idempotency key stays
 * used.
 *
 * @param tool undefined for an agent that does not show its tools.
 */
export function outcomeUnknown(tool: string | undefined, why: string, cause?: unknown): RialtoError {
  const called = tool === undefined ? 'a tool of the agent' : `the tool "${tool}"`;
  return new RialtoError('outcome_unknown', {
    message: `the outcome is unknown: ${why}, and ${called} is not called again, because it may have taken effect`,
    data: { ambiguous: true, ...(tool !== undefined && { tool }) },
    cause,
  });
}

/** Reason for an unknown outcome after a process of the gateway was killed during a call. */
export const callerLost = 'the process that called it was lost before the answer';

/** True when a call failed after it may have reached its server, and the server did not answer it. */
export function isUnanswered(error: RialtoError): boolean {
  if (error.code === 'remote_timeout') return true;
  return error.code === 'remote_transport' && error.data?.upstreamStatus === undefined && mayHaveArrived(error);
}

/** Converts "the server is not available" to a failure of the call: waiting would look like a lost call. */
export function asFailure(thrown: unknown): RialtoError {
  const error = RialtoError.from(thrown);
  const isFromConnection = error.data?.server !== undefined || error.data?.retryAfterSeconds !== undefined;
  if (error.code !== 'unavailable' || !isFromConnection) return error;
  return new RialtoError('remote_transport', { message: error.message, data: error.data, cause: error });
}
