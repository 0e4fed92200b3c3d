import { RialtoError } from '../../kernel/errors.js';
import { mayHaveArrived } from '../../platform/http/outbound/departed.js';
import { unreachableReason, withReason } from '../../platform/http/outbound/unreachable.js';

const maxCauses = 6;
/** Texts of gRPC errors for a call that was never sent. */
const neverConnected = /No connection established|Name resolution failed|Resolution/;
/** gRPC statuses that only a remote agent sends: it was reached. */
const answered: ReadonlySet<unknown> = new Set([7, 8, 16]); // PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAUTHENTICATED

/**
 * True when it is unknown whether the agent took a request: it may have been sent, and no answer came. False for an
 * answer with any status, and for a failure before anything can have been sent.
 */
function isOutcomeUnknown(thrown: unknown): boolean {
  const error = RialtoError.from(thrown);
  const { code, data = {} } = error;
  if (code === 'remote_timeout') return true;
  if (code !== 'remote_transport' || data.tokenStatus !== undefined) return false;
  if (data.grpcStatus !== undefined) {
    return !answered.has(data.grpcStatus) && !causesOf(error).some(({ message }) => neverConnected.test(message));
  }
  return data.httpStatus === undefined && mayHaveArrived(error);
}

function causesOf(error: Error): Error[] {
  const causes: Error[] = [];
  for (let next: unknown = error; next instanceof Error && causes.length < maxCauses; next = next.cause)
    causes.push(next);
  return causes;
}

/**
 * Returns the failure of a call with a text that names the agent and the reason. The text says "could not be reached"
 * only when nothing can have arrived; otherwise `data.ambiguous` is true. An address of the card that may not be
 * called is a fault of the remote agent, not of the caller.
 */
export function namedFailure(error: RialtoError, slug: string): RialtoError {
  const { code, data, hint } = error;
  const who = `the agent "${slug}"`;
  if (code === 'url_not_allowed') {
    const message = `${who} cannot be called: an address of its card may not be called`;
    return new RialtoError('remote_transport', { message, hint, data: { ...data, reason: code }, cause: error });
  }
  if (code === 'remote_timeout' && error.message === new RialtoError(code).message)
    return new RialtoError(code, { message: `${who} did not answer in time`, hint, data, cause: error });
  const isAnswered = data?.httpStatus !== undefined && data.grpcStatus === undefined;
  if (code !== 'remote_transport' || isAnswered || data?.tokenStatus !== undefined) return error;
  const found = unreachableReason(error);
  const isUnknown = isOutcomeUnknown(error);
  const what = isUnknown ? 'did not answer' : 'could not be reached';
  const message = withReason(`${who} ${what}`, error);
  const facts = { ...data, ...(found && { reason: found.reason }), ...(isUnknown && { ambiguous: true }) };
  return new RialtoError(code, { message, hint, data: facts, cause: error });
}
