import { errorCodes, type ErrorCode, type RialtoError } from '../../kernel/errors.js';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { refusalHeaders } from './limit-headers.js';

/** HTTP status of each error code on the management API (decisions: errors and statuses). */
export const problemStatus: Record<ErrorCode, number> = {
  invalid_params: 400,
  unauthenticated: 401,
  auth_not_configured: 503,
  denied: 403,
  approval_required: 409,
  tool_changed: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  unprocessable: 422,
  rate_limited: 429,
  loop_detected: 422,
  idempotency_key_reused: 409,
  url_not_allowed: 422,
  card_invalid: 400,
  slug_taken: 409,
  no_agent: 422,
  policy_invalid: 422,
  header_mismatch: 400,
  credential_required: 422,
  credential_refused: 422,
  task_not_found: 404,
  task_not_cancelable: 409,
  push_not_supported: 422,
  unsupported_operation: 422,
  content_type_not_supported: 415,
  extended_card_not_configured: 404,
  extension_required: 422,
  version_not_supported: 422,
  method_not_found: 404,
  remote_timeout: 504,
  remote_transport: 502,
  remote_invalid_response: 502,
  remote_task_failed: 502,
  remote_lost: 502,
  outcome_unknown: 502,
  remote_error: 502,
  canceled: 499,
  poisoned: 500,
  unavailable: 503,
  internal: 500,
};

/** An RFC 9457 problem document. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail?: string;
  hint?: string;
  violations?: unknown;
  requestId: string;
  [fact: string]: unknown;
}

/** Makes the problem document of an error. It contains the error's message only when the code is public. */
function problemOf(code: ErrorCode, requestId: string, error?: RialtoError): Problem {
  const { title, public: open } = errorCodes[code];
  return {
    ...(open ? error?.data : undefined),
    type: `urn:rialto:problem:${code}`,
    title,
    status: problemStatus[code],
    code,
    ...(open && error && error.message !== title && { detail: error.message }),
    ...(error?.hint && { hint: error.hint }),
    ...(error?.violations && { violations: error.violations }),
    requestId,
  };
}

/** Makes the status, headers and body of an error response. */
export function problemAnswer(
  request: DoorRequest,
  code: ErrorCode,
  error?: RialtoError,
  challenge = 'Bearer realm="rialto"',
): { status: number; headers: Record<string, string>; body: string } {
  const problem = problemOf(code, request.requestId, error);
  const { status } = problem;
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json; charset=utf-8',
    'Cache-Control': 'no-store',
    ...(status === 503 && { 'Retry-After': '5' }),
    ...refusalHeaders(error?.data),
  };
  if (status === 401) headers['WWW-Authenticate'] = challenge;
  return { status, headers, body: JSON.stringify(problem) };
}

/** Ends a response with a problem document and the headers that belong to its status. */
export function sendProblem(
  request: DoorRequest,
  response: DoorResponse,
  code: ErrorCode,
  error?: RialtoError,
  challenge?: string,
): void {
  const { status, headers, body } = problemAnswer(request, code, error, challenge);
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.end(request.method === 'HEAD' ? undefined : body);
}
