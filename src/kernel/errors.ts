/**
 * All error codes: a new meaning is a new row here. `retryable` says whether the same request may succeed later;
 * `public` says whether the message may leave the process (otherwise a door shows `title` only). The doors map codes to
 * the wire: protocol/mcp/errors.ts, protocol/a2a/…/errors.ts, platform/http/problem.ts.
 */
export const errorCodes = {
  // the caller
  invalid_params: { title: 'Invalid parameters', retryable: false, public: true },
  unauthenticated: { title: 'Authentication required', retryable: false, public: true },
  auth_not_configured: { title: 'Authentication is not configured', retryable: false, public: true },
  denied: { title: 'Not permitted', retryable: false, public: true },
  approval_required: { title: 'A person must approve this call', retryable: true, public: true },
  tool_changed: { title: 'The tool changed and waits for approval', retryable: false, public: true },
  not_found: { title: 'Not found', retryable: false, public: true },
  method_not_allowed: { title: 'Method not allowed', retryable: false, public: true },
  conflict: { title: 'Conflict', retryable: false, public: true },
  too_large: { title: 'Too large', retryable: false, public: true },
  unsupported_media_type: { title: 'Unsupported content type', retryable: false, public: true },
  unprocessable: { title: 'Refused', retryable: false, public: true },
  rate_limited: { title: 'Too many requests', retryable: true, public: true },
  loop_detected: { title: 'Delegation is too deep', retryable: false, public: true },
  idempotency_key_reused: { title: 'Idempotency key reused with another payload', retryable: false, public: true },
  url_not_allowed: { title: 'URL not allowed', retryable: false, public: true },
  card_invalid: { title: 'Agent card unreachable or invalid', retryable: false, public: true },
  slug_taken: { title: 'Slug already taken', retryable: false, public: true },
  no_agent: { title: 'No agent can take this work', retryable: false, public: true },
  policy_invalid: { title: 'Policy is not valid', retryable: false, public: true },
  header_mismatch: { title: 'The headers and the body disagree', retryable: false, public: true },
  credential_required: { title: 'Your own credential is required', retryable: false, public: true },
  credential_refused: { title: 'Your credential was refused', retryable: false, public: true },
  // A2A (v1.0 section 3.3.2)
  task_not_found: { title: 'Task not found', retryable: false, public: true },
  task_not_cancelable: { title: 'Task cannot be canceled', retryable: false, public: true },
  push_not_supported: { title: 'Push notifications are not supported', retryable: false, public: true },
  unsupported_operation: { title: 'This operation is not supported', retryable: false, public: true },
  content_type_not_supported: { title: 'Incompatible content types', retryable: false, public: true },
  extended_card_not_configured: { title: 'No extended agent card', retryable: false, public: true },
  extension_required: { title: 'A required extension was not activated', retryable: false, public: true },
  version_not_supported: { title: 'Protocol version not supported', retryable: false, public: true },
  method_not_found: { title: 'Method not found', retryable: false, public: true },
  // the remote agent (RE-24…RE-29)
  remote_timeout: { title: 'The remote side did not answer in time', retryable: true, public: true },
  remote_transport: { title: 'The remote side could not be reached', retryable: true, public: true },
  remote_invalid_response: {
    title: 'The remote side sent an answer that its protocol does not allow',
    retryable: false,
    public: true,
  },
  remote_task_failed: { title: 'The remote agent failed the task', retryable: false, public: true },
  remote_lost: { title: 'The remote agent no longer knows the task', retryable: false, public: true },
  outcome_unknown: {
    title: 'It is unknown whether the remote side received the call',
    retryable: false,
    public: true,
  },
  remote_error: { title: 'The remote side answered with an error', retryable: false, public: true },
  canceled: { title: 'Canceled by the caller', retryable: false, public: true },
  // the gateway itself
  poisoned: { title: 'The processes that worked on it died', retryable: false, public: true },
  unavailable: { title: 'Temporarily unavailable', retryable: true, public: true },
  internal: { title: 'Internal error', retryable: false, public: false },
} as const satisfies Record<string, { title: string; retryable: boolean; public: boolean }>;

export type ErrorCode = keyof typeof errorCodes;

/** One invalid field of a request: a path like a JSON pointer, and the problem. */
export interface Violation {
  field: string;
  description: string;
}

export interface ErrorDetails {
  /** The problem, described for a person. It never has a secret or data of another tenant. */
  message?: string;
  /** The action that solves the problem. */
  hint?: string;
  violations?: readonly Violation[];
  /** Facts for programs; part of the answer at every door. */
  data?: Record<string, unknown>;
  cause?: unknown;
}

/** The error that all services throw: a meaning, not a wire code. */
export class RialtoError extends Error {
  readonly code: ErrorCode;
  readonly hint?: string;
  readonly violations?: readonly Violation[];
  readonly data?: Record<string, unknown>;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(
      details.message ?? errorCodes[code].title,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.name = 'RialtoError';
    this.code = code;
    this.hint = details.hint;
    this.violations = details.violations;
    this.data = details.data;
  }

  /** Returns a RialtoError as it is. Every other error becomes `internal`, never an error of the client. */
  static from(error: unknown): RialtoError {
    return error instanceof RialtoError ? error : new RialtoError('internal', { cause: error });
  }
}
