import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { jsonRpcCodes } from '../jsonrpc.js';

/** The error codes that agents see; errors with a code in `retryableCodes` may succeed later. */
export const a2eCodes = [
  'mcp_server_not_found',
  'mcp_unavailable',
  'mcp_tool_not_found',
  'mcp_resource_not_found',
  'mcp_prompt_not_found',
  'mcp_transport_error',
  'mcp_protocol_error',
  'mcp_sampling_refused',
  'mcp_capability_missing',
  'mcp_denied',
] as const;
export type A2eCode = (typeof a2eCodes)[number];

const retryableCodes: ReadonlySet<A2eCode> = new Set<A2eCode>(['mcp_unavailable', 'mcp_transport_error']);

/** The subject of a message; it decides which "not found" code an error has. */
export type Subject = 'server' | 'tool' | 'resource' | 'prompt' | 'message';

const notFound: Readonly<Record<Subject, A2eCode>> = {
  server: 'mcp_server_not_found',
  tool: 'mcp_tool_not_found',
  resource: 'mcp_resource_not_found',
  prompt: 'mcp_prompt_not_found',
  message: 'mcp_protocol_error',
};

/**
 * Codes with which MCP servers say that the subject does not exist (MCP 2025-11-25 and 2026-07-28, tools and
 * resources).
 */
const unknownToServer: Partial<Record<Subject, ReadonlySet<unknown>>> = {
  tool: new Set([jsonRpcCodes.invalidParams]),
  resource: new Set([jsonRpcCodes.invalidParams, -32_002]),
};

const otherCodes: Partial<Record<ErrorCode, A2eCode>> = {
  unauthenticated: 'mcp_denied',
  auth_not_configured: 'mcp_denied',
  denied: 'mcp_denied',
  approval_required: 'mcp_denied',
  tool_changed: 'mcp_denied',
  url_not_allowed: 'mcp_denied',
  loop_detected: 'mcp_denied',
  credential_required: 'mcp_denied',
  credential_refused: 'mcp_denied',
  unsupported_operation: 'mcp_capability_missing',
  rate_limited: 'mcp_unavailable',
  unavailable: 'mcp_unavailable',
  canceled: 'mcp_unavailable',
  remote_timeout: 'mcp_unavailable',
  remote_transport: 'mcp_transport_error',
  outcome_unknown: 'mcp_transport_error',
  poisoned: 'mcp_transport_error',
  internal: 'mcp_transport_error',
};

/** An A2E error for which the gateway's own error codes have no match. */
export class A2eRefusal extends Error {
  constructor(
    readonly code: A2eCode,
    message: string,
  ) {
    super(message);
    this.name = 'A2eRefusal';
  }
}

/**
 * Returns the A2E code of an error about `subject` (AE-35, AE-67, AE-70); `mcp_protocol_error` when no other code fits.
 */
export function a2eCodeOf(thrown: unknown, subject: Subject): A2eCode {
  if (thrown instanceof A2eRefusal) return thrown.code;
  const error = RialtoError.from(thrown);
  if (error.code === 'not_found') return notFound[subject];
  if (error.code === 'remote_error' && unknownToServer[subject]?.has(relayedOf(error)?.code)) return notFound[subject];
  if (error.code === 'remote_error' && isSamplingRefusal(relayedOf(error))) return 'mcp_sampling_refused';
  // A resource server without change notifications.
  if (error.code === 'unprocessable' && subject === 'resource') return 'mcp_capability_missing';
  return otherCodes[error.code] ?? 'mcp_protocol_error';
}

/** The `error` of a reply. */
export type A2eError = JsonObject & { readonly code: A2eCode; readonly message: string; readonly retryable: boolean };

/**
 * Converts a thrown value to the `error` of a reply about `subject`. `data` repeats `retryable`, has the gateway's
 * error code as `reason`, and the error of an MCP server as `mcp`. An error that is not public shows only its title.
 */
export function a2eError(thrown: unknown, subject: Subject): A2eError {
  const code = a2eCodeOf(thrown, subject);
  const retryable = retryableCodes.has(code);
  if (thrown instanceof A2eRefusal) return { code, message: thrown.message, retryable, data: { retryable } };
  const error = RialtoError.from(thrown);
  const { title, public: isPublic } = errorCodes[error.code];
  if (!isPublic) return { code, message: title, retryable, data: { retryable, reason: error.code } };
  const { relayed, ...facts } = error.data ?? {};
  const data = {
    ...facts,
    retryable,
    reason: error.code,
    ...(relayed !== undefined && { mcp: relayed }),
    ...(error.hint !== undefined && { hint: error.hint }),
    ...(error.violations && { violations: error.violations }),
  };
  return { code, message: error.message, retryable, data: data as unknown as JsonObject };
}

/** True when an agent refused a request of an MCP server (AE-33). */
function isSamplingRefusal(relayed: JsonObject | undefined): boolean {
  return isJsonObject(relayed?.data) && relayed.data.reason === 'mcp_sampling_refused';
}

function relayedOf({ data }: RialtoError): JsonObject | undefined {
  const relayed = data?.relayed as Json | undefined;
  return isJsonObject(relayed) ? relayed : undefined;
}
