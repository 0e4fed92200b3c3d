import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import { markDeparted } from '../../platform/http/outbound/departed.js';
import { parseJson } from '../../protocol/json-text.js';

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
  const told = meaningOf(thrown);
  const error = new RialtoError(told.code, { ...told, data: { server, ...told.data }, cause: thrown });
  if (told.message === closedLine) markDeparted(error);
  return error;
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
  readonly data?: JsonObject;
}

function meaningOf(thrown: unknown): Meaning {
  const { name, code, message = '', data } = (thrown ?? {}) as Partial<Thrown>;
  const refusal = refusalOverHttp(thrown);
  if (refusal) return refusal;
  if (typeof code === 'number') return relayed({ code, message, data: data ?? {} });
  if (code === 'REQUEST_TIMEOUT') return { code: 'remote_timeout', message: 'the MCP server did not answer in time' };
  if (code === 'INVALID_RESULT' || code === 'UNSUPPORTED_RESULT_TYPE' || name === 'ZodError')
    return invalid(`the MCP server answered something else${whatIsWrong(message)}`);
  if (name === 'SyntaxError') return invalid('the MCP server answered what is not JSON');
  const version = unsupported.exec(message)?.[1];
  if (version !== undefined)
    return invalid(`the MCP server speaks MCP ${storableText(version, 40)}, which the gateway does not: ${spoken}`);
  if (code === 'CLIENT_HTTP_UNEXPECTED_CONTENT') return invalid(`the MCP server answered ${mediaType(data)}`);
  if (noPin.test(message)) return invalid('the MCP server does not speak MCP 2026-07-28, which its `era` asks for');
  if (code === 'CONNECTION_CLOSED' || closed.test(message)) return { code: 'remote_transport', message: closedLine };
  const { cause } = (thrown ?? {}) as { cause?: unknown };
  return cause instanceof Error && cause !== thrown
    ? meaningOf(cause)
    : { code: 'remote_transport', message: unreachable };
}

/*
 * What the SDK says in words alone; a test holds each of these to the SDK.
 */
const unsupported = /^Server's protocol version is not supported: (.*)$/s;
const posted = /^Error POSTing to endpoint \(HTTP (\d{3})\): (.*)$/s;
const closed = /\bconnection closed\b/i;
const noPin = /did not offer pinned protocol version/;
const spoken = 'it speaks 2024-11-05 to 2025-11-25, and 2026-07-28';
const closedLine = 'the MCP server ended the connection';
const maxWrong = 300;

/** A status of HTTP; with an error of the protocol in the body, that error. */
function refusalOverHttp(thrown: unknown): Meaning | undefined {
  const { code, status: given, message = '', data } = (thrown ?? {}) as Partial<Thrown>;
  const [, ofPost, body] = posted.exec(message) ?? [];
  const isEventStream = typeof thrown === 'object' && thrown !== null && 'event' in thrown;
  const status = given ?? (ofPost !== undefined ? Number(ofPost) : isEventStream ? code : undefined);
  if (typeof status !== 'number') return undefined;
  const isAboutCaller = status === 401 || status === 403;
  const error = isAboutCaller ? undefined : protocolErrorIn(body ?? (data as { text?: unknown } | undefined)?.text);
  if (error) {
    const told = relayed(error);
    return { ...told, data: { ...told.data, upstreamStatus: status } };
  }
  return {
    code: 'remote_transport',
    message: `the MCP server answered HTTP ${status}`,
    data: { upstreamStatus: status },
    ...(status === 401 && {
      hint: 'a server that wants a credential has it in `headers`, or of each user by `userCredentials`',
    }),
  };
}

/** The error of JSON-RPC that a body holds. */
function protocolErrorIn(body: unknown): Relayed | undefined {
  const parsed = typeof body === 'string' ? parseJson(body) : undefined;
  const error = parsed?.ok && isJsonObject(parsed.value) ? parsed.value.error : undefined;
  if (!isJsonObject(error) || !Number.isInteger(error.code) || typeof error.message !== 'string') return undefined;
  return { code: error.code as number, message: error.message, data: error.data ?? {} };
}

interface Relayed {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

function relayed(error: Relayed): Meaning {
  return { code: 'remote_error', message: error.message, data: { relayed: error as unknown as JsonObject } };
}

function invalid(message: string): Meaning {
  return { code: 'remote_invalid_response', message };
}

/** The members that the SDK found wrong: it says them as a list of issues in JSON, or in words. */
function whatIsWrong(message: string): string {
  const [, words = message] = /^Invalid result for [^:]*: (.*)$/s.exec(message) ?? [];
  const parsed = parseJson(words);
  if (!parsed.ok) return words === '' || words === message ? '' : `: ${storableText(words, maxWrong)}`;
  const issues = Array.isArray(parsed.value) ? parsed.value.filter(isJsonObject) : [];
  const wrong = issues.slice(0, 3).map(({ path, message: what }) => {
    const at = Array.isArray(path) ? path.filter((step) => typeof step !== 'object').join('.') : '';
    const words = typeof what === 'string' ? what : '';
    return words.endsWith('received undefined') ? `${at} is missing` : `${at}: ${words}`;
  });
  return wrong.length === 0 ? '' : storableText(`: ${wrong.join('; ')}`, maxWrong);
}

function mediaType(data: unknown): string {
  const { contentType } = (data ?? {}) as { contentType?: unknown };
  if (typeof contentType !== 'string') return 'without a content type';
  return `${storableText(contentType.split(';')[0]!.trim(), 100)} in place of JSON or a stream of events`;
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

/** What a call is told while nobody tries to connect after a failure. */
export function resting(
  cause: RialtoError,
  { server, autoReconnect }: { readonly server: string; readonly autoReconnect: boolean },
  waitMs: number,
): RialtoError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return new RialtoError('unavailable', {
    message: `the MCP server is not available: ${cause.message}`,
    data: { server, ...(autoReconnect && { retryAfterSeconds }) },
    cause,
  });
}

export function takenAway(server: string, cause?: unknown): RialtoError {
  return new RialtoError('unavailable', { message: 'the MCP server was taken away', data: { server }, cause });
}

/** Whether the server has forgotten the session: it has done nothing, and wants a new one (MCP Streamable HTTP, sessions). */
export function isSessionGone(thrown: unknown): boolean {
  return (thrown as Partial<Thrown> | undefined)?.status === 404;
}

/** Whether the server understood and will not, which is no failure of the connection. */
export function isRefusal({ code, data }: RialtoError): boolean {
  if (code === 'remote_error') return true;
  const status = data?.upstreamStatus;
  return typeof status === 'number' && status >= 400 && status < 500 && status !== 401 && status !== 403;
}

/** The SDK hands on what its fetch threw, perhaps inside of its own, and the data of an answer, which is ours for one that was none. */
function ownError(thrown: unknown): RialtoError | undefined {
  const { data } = (thrown ?? {}) as Partial<Thrown>;
  if (data instanceof RialtoError) return data;
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++)
    if (error instanceof RialtoError) return error;
  return undefined;
}
