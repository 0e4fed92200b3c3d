import type { ErrorCode } from '../../../kernel/errors.js';

/** The gRPC status codes by name, which HTTP+JSON uses too (google.rpc.Code). */
export const grpcCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcName = keyof typeof grpcCodes;

/** v1.0.1 changed six mappings of v1.0.0; some conformance kits still expect the old ones. */
export type ErrorProfile = '1.0.1' | '1.0.0';

export interface ErrorRow {
  /** `auth`: the specification has no code for this error, so each door uses its own. */
  readonly rpc: number | 'auth';
  /** The HTTP status of HTTP+JSON. */
  readonly http: number;
  readonly grpc: GrpcName;
  /**
   * The reason in ErrorInfo, when A2A defines one. `none`: the standard code says everything, so there is no ErrorInfo.
   */
  readonly reason?: string;
  /** The values of v1.0.0, when they differ. */
  readonly older?: { readonly http?: number; readonly grpc?: GrpcName };
}

/**
 * The mapping of every error code at the A2A doors: v1.0 section 5.4 (v1.0.1). The gateway's own codes have the nearest
 * match.
 */
export const errorRows = {
  invalid_params: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT', reason: 'none' },
  method_not_found: { rpc: -32601, http: 404, grpc: 'UNIMPLEMENTED', reason: 'none' },
  method_not_allowed: { rpc: -32600, http: 405, grpc: 'UNIMPLEMENTED' },
  unauthenticated: { rpc: 'auth', http: 401, grpc: 'UNAUTHENTICATED' },
  auth_not_configured: { rpc: 'auth', http: 503, grpc: 'UNAVAILABLE' },
  denied: { rpc: 'auth', http: 403, grpc: 'PERMISSION_DENIED' },
  approval_required: { rpc: 'auth', http: 409, grpc: 'FAILED_PRECONDITION' },
  tool_changed: { rpc: 'auth', http: 403, grpc: 'PERMISSION_DENIED' },
  not_found: { rpc: -32602, http: 404, grpc: 'NOT_FOUND' },
  conflict: { rpc: -32602, http: 409, grpc: 'ABORTED' },
  idempotency_key_reused: { rpc: -32602, http: 409, grpc: 'ALREADY_EXISTS' },
  slug_taken: { rpc: -32602, http: 409, grpc: 'ALREADY_EXISTS' },
  too_large: { rpc: -32600, http: 413, grpc: 'RESOURCE_EXHAUSTED' },
  // The type of a whole request, not of a part; conformance kits expect the same code.
  unsupported_media_type: { rpc: -32005, http: 415, grpc: 'INVALID_ARGUMENT', reason: 'CONTENT_TYPE_NOT_SUPPORTED' },
  unprocessable: { rpc: -32602, http: 422, grpc: 'FAILED_PRECONDITION' },
  rate_limited: { rpc: -32000, http: 429, grpc: 'RESOURCE_EXHAUSTED' },
  loop_detected: { rpc: -32602, http: 422, grpc: 'FAILED_PRECONDITION' },
  url_not_allowed: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT' },
  card_invalid: { rpc: -32602, http: 400, grpc: 'FAILED_PRECONDITION' },
  no_agent: { rpc: -32602, http: 422, grpc: 'FAILED_PRECONDITION' },
  policy_invalid: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT' },
  header_mismatch: { rpc: -32602, http: 400, grpc: 'INVALID_ARGUMENT' },
  credential_required: { rpc: -32602, http: 422, grpc: 'FAILED_PRECONDITION' },
  credential_refused: { rpc: -32602, http: 422, grpc: 'FAILED_PRECONDITION' },
  // Defined by A2A
  task_not_found: { rpc: -32001, http: 404, grpc: 'NOT_FOUND', reason: 'TASK_NOT_FOUND' },
  task_not_cancelable: {
    rpc: -32002,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'TASK_NOT_CANCELABLE',
    older: { http: 409 },
  },
  push_not_supported: {
    rpc: -32003,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
    older: { grpc: 'UNIMPLEMENTED' },
  },
  unsupported_operation: {
    rpc: -32004,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'UNSUPPORTED_OPERATION',
    older: { grpc: 'UNIMPLEMENTED' },
  },
  content_type_not_supported: {
    rpc: -32005,
    http: 400,
    grpc: 'INVALID_ARGUMENT',
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
    older: { http: 415 },
  },
  remote_invalid_response: {
    rpc: -32006,
    http: 500,
    grpc: 'INTERNAL',
    reason: 'INVALID_AGENT_RESPONSE',
    older: { http: 502 },
  },
  extended_card_not_configured: {
    rpc: -32007,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  },
  extension_required: {
    rpc: -32008,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'EXTENSION_SUPPORT_REQUIRED',
  },
  version_not_supported: {
    rpc: -32009,
    http: 400,
    grpc: 'FAILED_PRECONDITION',
    reason: 'VERSION_NOT_SUPPORTED',
    older: { grpc: 'UNIMPLEMENTED' },
  },
  // In the other remote failures the answer was not invalid; for the caller they are failures of the gateway.
  remote_timeout: { rpc: -32603, http: 504, grpc: 'DEADLINE_EXCEEDED' },
  remote_transport: { rpc: -32603, http: 502, grpc: 'UNAVAILABLE' },
  remote_task_failed: { rpc: -32603, http: 502, grpc: 'INTERNAL' },
  remote_lost: { rpc: -32603, http: 502, grpc: 'INTERNAL' },
  // UNKNOWN is not a code after which gRPC clients retry automatically.
  outcome_unknown: { rpc: -32603, http: 502, grpc: 'UNKNOWN' },
  remote_error: { rpc: -32603, http: 502, grpc: 'INTERNAL' },
  canceled: { rpc: -32603, http: 499, grpc: 'CANCELLED' },
  poisoned: { rpc: -32603, http: 500, grpc: 'ABORTED' },
  unavailable: { rpc: -32603, http: 503, grpc: 'UNAVAILABLE' },
  internal: { rpc: -32603, http: 500, grpc: 'INTERNAL' },
} as const satisfies Record<ErrorCode, ErrorRow>;
