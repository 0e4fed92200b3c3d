import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import type { VerbError } from '../../kernel/verb-bus.js';
import { jsonRpcCodes } from '../jsonrpc.js';

export interface McpError {
  readonly code: number;
  readonly message: string;
  readonly data: Record<string, unknown>;
}

const { invalidParams, internalError } = jsonRpcCodes;

/**
 * Codes and names of the MCP surface that callers know (RE-24…RE-30, RE-89); every other error is named by its own
 * code.
 */
const knownCodes: Partial<Record<ErrorCode, { code: number; name?: string }>> = {
  unauthenticated: { code: -32000 },
  auth_not_configured: { code: -32000 },
  denied: { code: -32003, name: 'AuthorizationError' },
  tool_changed: { code: -32003, name: 'AuthorizationError' },
  remote_timeout: { code: -32201, name: 'RemoteA2ATimeoutError' },
  remote_transport: { code: -32202, name: 'RemoteA2ATransportError' },
  remote_invalid_response: { code: -32203, name: 'RemoteA2AInvalidResponseError' },
  remote_task_failed: { code: -32204, name: 'RemoteA2ATaskFailedError' },
  outcome_unknown: { code: -32202, name: 'RemoteA2ATransportError' },
  remote_lost: { code: -32204, name: 'RemoteA2ATaskFailedError' },
  // The remote side refused the call: for the caller it is the same failure. data.remoteCode and data.remoteMessage
  // show the difference.
  remote_error: { code: -32204, name: 'RemoteA2ATaskFailedError' },
  // HeaderMismatch of specification 2026-07-28.
  header_mismatch: { code: -32020 },
  credential_required: { code: -32205, name: 'UserCredentialRequiredError' },
  credential_refused: { code: -32206, name: 'UserCredentialRefusedError' },
  approval_required: { code: -32207, name: 'ApprovalRequiredError' },
};

const callerCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid_params',
  'not_found',
  'task_not_found',
  'method_not_allowed',
  'conflict',
  'too_large',
  'unsupported_media_type',
  'unprocessable',
  'loop_detected',
  'idempotency_key_reused',
  'url_not_allowed',
  'card_invalid',
  'slug_taken',
  'no_agent',
  'policy_invalid',
]);

/**
 * Converts a thrown value to a JSON-RPC error of the MCP surface. `data` has `code` (the gateway's error code), `name`
 * when the surface has one, `hint` and `violations` when present, and the facts of the error. An error that is not
 * public shows only its title.
 */
export function mcpError(thrown: unknown): McpError {
  const error = RialtoError.from(thrown);
  const { title, public: isPublic } = errorCodes[error.code];
  const { code, name } = numbered(error.code);
  const relayed = error.code === 'remote_error' ? error.data?.relayed : undefined;
  if (relayed !== undefined) return relayed as McpError;
  if (!isPublic) return { code, message: title, data: { code: error.code } };
  return {
    code,
    message: error.message,
    data: {
      ...error.data,
      ...(error.violations && { violations: error.violations }),
      ...(error.hint !== undefined && { hint: error.hint }),
      code: error.code,
      ...(name !== undefined && { name }),
    },
  };
}

/** Formats an error for the events of a call: with the code and name of the MCP surface (RE-39). */
export function verbError({ code: reason, message }: RialtoError): VerbError {
  return { ...numbered(reason), reason, message };
}

function numbered(reason: ErrorCode): { code: number; name?: string } {
  return knownCodes[reason] ?? { code: callerCodes.has(reason) ? invalidParams : internalError };
}
