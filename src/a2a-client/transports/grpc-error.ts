import { decodeErrorInfo, decodeStatus, isGrpcError } from '@a2a-js/sdk/errors/grpc';
import { status } from '@grpc/grpc-js';
import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { refusedAddress } from './grpc-resolver.js';
import { refusedAnswer } from './grpc-interceptor.js';
import { codeOfReason, notA2a, refused } from './wire-error.js';

const errorInfoUrl = 'type.googleapis.com/google.rpc.ErrorInfo';

const meanings: Partial<Record<status, ErrorCode>> = {
  [status.CANCELLED]: 'remote_transport',
  [status.DEADLINE_EXCEEDED]: 'remote_timeout',
  [status.RESOURCE_EXHAUSTED]: 'remote_transport',
  [status.UNAVAILABLE]: 'remote_transport',
  [status.UNAUTHENTICATED]: 'remote_transport',
  [status.PERMISSION_DENIED]: 'remote_transport',
};
/** HTTP status for a gRPC status, so that callers need one table only (google.rpc.Code). */
const httpStatuses: Partial<Record<status, number>> = {
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.UNAVAILABLE]: 503,
  [status.UNAUTHENTICATED]: 401,
  [status.PERMISSION_DENIED]: 403,
};

/**
 * Converts a failed gRPC call to a RialtoError: an A2A reason is an error of the remote agent, all else depends on the
 * status.
 */
export function grpcMeaning(error: unknown): RialtoError {
  if (!isGrpcError(error)) return notA2a('it cannot be read', error);
  const { status: code, message } = error;
  const [, flaw] = message.split(refusedAnswer);
  if (flaw !== undefined) return notA2a(flaw, error);
  if (message.includes(refusedAddress)) return new RialtoError('url_not_allowed', { cause: error });
  const remoteCode = codeOfReason(error.reason);
  const data = detailsIn(error.statusDetailsBin);
  if (remoteCode !== undefined) return refused({ code: remoteCode, message, data }, { grpcStatus: code });
  const meaning = meanings[code as status];
  if (meaning === undefined) return refused({ message, data }, { grpcStatus: code });
  const httpStatus = httpStatuses[code as status];
  return new RialtoError(meaning, { data: { grpcStatus: code, ...(httpStatus && { httpStatus }) }, cause: error });
}

/** Returns the ErrorInfo details of a failed call; none when they cannot be read. */
function detailsIn(status: Buffer | undefined): JsonObject[] {
  if (!status) return [];
  try {
    return decodeStatus(status)
      .details.filter(({ typeUrl }) => typeUrl === errorInfoUrl)
      .map(({ value }) => ({ '@type': errorInfoUrl, ...decodeErrorInfo(value) }));
  } catch {
    return [];
  }
}

/** Returns true when the agent refused the call because its connection is out of memory (ENHANCE_YOUR_CALM). */
export function isExhausted(error: unknown): boolean {
  return (
    isGrpcError(error) &&
    (error.status as status) === status.RESOURCE_EXHAUSTED &&
    error.message.includes('Bandwidth exhausted or memory limit exceeded')
  );
}
