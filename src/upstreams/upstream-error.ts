import { errorCodes, RialtoError } from '../kernel/errors.js';

/*
 * What the official SDK throws is told apart by its shape, so that nobody loads it for that: an error of the protocol has a number as its
 * code, one of its own a word, one of HTTP a status as well; a body that is no message has the name of what its parser throws.
 */

/**
 * What a call of an MCP server threw, by its meaning. What the server itself says keeps its code, text and data in `data.relayed`
 * for callers who speak its protocol.
 */
export function upstreamError(thrown: unknown, server: string): RialtoError {
  const own = ownError(thrown);
  if (own) return withServer(own, server);
  const about = { data: { server }, cause: thrown };
  const { name, code, status, message, data } = (thrown ?? {}) as Partial<Thrown>;
  if (typeof code === 'number') {
    const relayed = { code, message, data: data ?? {} };
    return new RialtoError('remote_error', { ...about, message, data: { server, relayed } });
  }
  if (typeof status === 'number')
    return new RialtoError('remote_transport', {
      ...about,
      message: `the MCP server answered HTTP ${status}`,
      data: { server, upstreamStatus: status },
      ...(status === 401 && {
        hint: 'a server that wants a credential has it in `headers`, or of each user by `userCredentials`',
      }),
    });
  if (code === 'REQUEST_TIMEOUT')
    return new RialtoError('remote_timeout', { ...about, message: 'the MCP server did not answer in time' });
  if (code === 'INVALID_RESULT' || code === 'UNSUPPORTED_RESULT_TYPE' || name === 'ZodError')
    return new RialtoError('remote_invalid_response', { ...about, message: 'the MCP server answered something else' });
  return new RialtoError('remote_transport', { ...about, message: unreachable });
}

/** What our own way out says of an address names no server. */
function withServer(own: RialtoError, server: string): RialtoError {
  const { code, message, hint, violations, data } = own;
  if (data?.server !== undefined || code === 'canceled') return own;
  const isBare = code === 'remote_transport' && message === errorCodes.remote_transport.title;
  return new RialtoError(code, {
    message: isBare ? unreachable : message,
    hint,
    violations,
    data: { ...data, server },
    cause: own,
  });
}

const unreachable = 'the MCP server could not be reached';

interface Thrown {
  readonly name: string;
  readonly code: number | string;
  readonly status: number;
  readonly message: string;
  readonly data: unknown;
}

/** Whether the server has forgotten the session: it has done nothing, and wants a new one (MCP Streamable HTTP, sessions). */
export function isSessionGone(thrown: unknown): boolean {
  return (thrown as Partial<Thrown> | undefined)?.status === 404;
}

/** The SDK hands on what its fetch threw, perhaps inside of its own, and the data of an answer, which is ours for one that was none. */
function ownError(thrown: unknown): RialtoError | undefined {
  const { data } = (thrown ?? {}) as Partial<Thrown>;
  if (data instanceof RialtoError) return data;
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++)
    if (error instanceof RialtoError) return error;
  return undefined;
}
