import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type Json, type JsonObject } from '../../kernel/json.js';

/** JSON-RPC codes for the reasons that HTTP+JSON and gRPC send instead (v1.0 section 5.4). */
const codesByReason: Readonly<Record<string, number>> = {
  TASK_NOT_FOUND: -32001,
  TASK_NOT_CANCELABLE: -32002,
  PUSH_NOTIFICATION_NOT_SUPPORTED: -32003,
  UNSUPPORTED_OPERATION: -32004,
  CONTENT_TYPE_NOT_SUPPORTED: -32005,
  INVALID_AGENT_RESPONSE: -32006,
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: -32007,
  EXTENSION_SUPPORT_REQUIRED: -32008,
  VERSION_NOT_SUPPORTED: -32009,
};

/** The error that a remote agent reported, in terms of JSON-RPC. */
export interface RemoteFault {
  readonly code?: number;
  readonly message: string;
  /** Details of the error, as JSON-RPC and HTTP+JSON send them: in A2A 1.0 a list of google.rpc messages. */
  readonly data?: Json;
}

/** Returns the code of an A2A reason; undefined for any other reason. */
export function codeOfReason(reason: unknown): number | undefined {
  return typeof reason === 'string' && Object.hasOwn(codesByReason, reason) ? codesByReason[reason] : undefined;
}

/** Returns the facts of a fault in the form that every API of the gateway passes on (RE-89). */
export function faultFacts({ code, message }: RemoteFault): Record<string, unknown> {
  return { ...(code !== undefined && { remoteCode: code }), remoteMessage: storableText(message) };
}

/** Builds the error for a request that the remote agent understood and refused. */
export function refused(fault: RemoteFault, facts: Record<string, unknown> = {}): RialtoError {
  return new RialtoError('remote_error', {
    message: storableText(fault.message),
    data: { ...facts, ...faultFacts(fault) },
    cause: fault,
  });
}

/**
 * Returns the details of an error that a remote agent reported (v1.0 section 9.5); none for any other error. They are
 * for callers of the client only: the gateway passes on no text of a remote agent but its message.
 */
export function remoteDetailsOf({ cause }: RialtoError): JsonObject[] {
  const { data } = (cause ?? {}) as { data?: unknown };
  return Array.isArray(data) ? data.filter(isJsonObject) : [];
}

/** Builds the error for an answer that is not A2A (RE-29); the reason never quotes the answer. */
export function notA2a(reason: string, cause?: unknown): RialtoError {
  const message = `the remote agent's answer is not A2A: ${reason}`;
  return new RialtoError('remote_invalid_response', { message, data: { reason }, cause });
}

/**
 * Returns the A2A error in the body of an HTTP+JSON answer: `{ error: { message, details } }` with a reason of the
 * protocol (v1.0 section 11.6), or the bare `{ code, message }` of v0.3. Undefined when the body contains no A2A
 * error.
 */
export function restFault(body: Json | undefined): RemoteFault | undefined {
  if (!isJsonObject(body)) return undefined;
  const status = statusIn(body);
  const message = typeof status.message === 'string' ? status.message : '';
  if (typeof status.code === 'number' && status.code < 0) return { code: status.code, message, data: status.data };
  const data = restDetails(body);
  const code = data.map(({ reason }) => codeOfReason(reason)).find((known) => known !== undefined);
  return code === undefined ? undefined : { code, message, data };
}

/** Returns the google.rpc details in the body of an HTTP+JSON answer, also those with reasons of the agent itself. */
export function restDetails(body: Json | undefined): JsonObject[] {
  const { details } = isJsonObject(body) ? statusIn(body) : {};
  return Array.isArray(details) ? details.filter(isJsonObject) : [];
}

/** Returns the status of an error body, which some agents send without its `error` member. */
function statusIn(body: JsonObject): JsonObject {
  return isJsonObject(body.error) ? body.error : body;
}
