import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { E2eeError } from '../../protocol/e2ee/errors.js';
import { remoteDetailsOf } from '../transports/wire-error.js';

/** Codes that a call of the client can fail with; the codes from `remote_…` on are the codes of the gateway itself. */
export type A2AClientErrorCode =
  | 'a2a_task_failed'
  | 'a2a_task_canceled'
  | 'a2a_task_rejected'
  | 'a2a_timeout'
  | 'a2a_response_too_large'
  | 'empty_agent_response'
  | 'unauthenticated'
  | 'canceled'
  | 'remote_transport'
  | 'remote_invalid_response'
  | 'remote_error'
  | 'encryption_failed'
  | 'url_not_allowed'
  | 'invalid_params'
  | 'internal';

/** Known facts about a failure. */
export interface A2AClientErrorDetails {
  /** Id of the task at the remote agent: pass it as `taskId` to continue to wait. */
  readonly taskId?: string;
  readonly contextId?: string;
  /** HTTP status of the answer. */
  readonly httpStatus?: number;
  /** JSON-RPC code of the remote agent, e.g. -32001. */
  readonly remoteCode?: number;
  /**
   * Details that the remote agent sent with its error: google.rpc messages in JSON (v1.0 section 9.5). An agent of
   * Rialto sends an ErrorInfo: its `reason` is the error code in capitals, such as `APPROVAL_REQUIRED` with
   * `metadata.approvalUrl`.
   */
  readonly remoteDetails?: readonly JsonObject[];
  readonly cause?: unknown;
}

/** The only error class that `rialto/client` throws. */
export class A2AClientError extends Error {
  readonly code: A2AClientErrorCode;
  readonly taskId?: string;
  readonly contextId?: string;
  readonly httpStatus?: number;
  readonly remoteCode?: number;
  readonly remoteDetails: readonly JsonObject[];

  constructor(code: A2AClientErrorCode, message: string, details: A2AClientErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'A2AClientError';
    this.code = code;
    this.taskId = details.taskId;
    this.contextId = details.contextId;
    this.httpStatus = details.httpStatus;
    this.remoteCode = details.remoteCode;
    this.remoteDetails = details.remoteDetails ?? [];
  }
}

const known: Partial<Record<ErrorCode, A2AClientErrorCode>> = {
  remote_timeout: 'a2a_timeout',
  remote_transport: 'remote_transport',
  remote_invalid_response: 'remote_invalid_response',
  remote_error: 'remote_error',
  url_not_allowed: 'url_not_allowed',
  canceled: 'canceled',
  invalid_params: 'invalid_params',
};

/**
 * Converts any thrown value to an A2AClientError; includes the task id when it is known, so that the caller can resume
 * (AN-35).
 */
export function asClientError(thrown: unknown, taskId?: string): A2AClientError {
  if (thrown instanceof A2AClientError) return thrown;
  if (thrown instanceof E2eeError)
    return new A2AClientError('encryption_failed', `${thrown.code}: ${thrown.message}`, { taskId, cause: thrown });
  const error = RialtoError.from(thrown);
  const { httpStatus, remoteCode } = error.data ?? {};
  const isRefused = httpStatus === 401 || httpStatus === 403;
  const code = isTooLarge(error) ? 'a2a_response_too_large' : isRefused ? 'unauthenticated' : known[error.code];
  const text = error.hint === undefined ? error.message : `${error.message}: ${error.hint}`;
  return new A2AClientError(code ?? 'internal', text, {
    taskId: taskId ?? (typeof error.data?.taskId === 'string' ? error.data.taskId : undefined),
    httpStatus: typeof httpStatus === 'number' ? httpStatus : undefined,
    remoteCode: typeof remoteCode === 'number' ? remoteCode : undefined,
    remoteDetails: remoteDetailsOf(error),
    cause: thrown,
  });
}

/** True when the answer was over a size limit: the error itself says only "invalid", the reason is in its cause. */
function isTooLarge({ code, data, cause }: RialtoError): boolean {
  if (code !== 'remote_invalid_response') return false;
  const reason = typeof data?.reason === 'string' ? data.reason : cause instanceof Error ? cause.message : '';
  return /too large|over the limit|inflated bytes|remote_stream_limit/.test(reason);
}
