import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import { markDeparted } from '../../platform/http/outbound/departed.js';
import { unreachableReason } from '../../platform/http/outbound/unreachable.js';
import { parseJson } from '../../protocol/json-text.js';

/*
 * Errors of the official SDK are recognized by their shape, so that the SDK need not be loaded for that: a protocol
 * error has a number as its code, an error of the SDK a word, an HTTP error also a status; a body that is not a message
 * has the name of the parser's error.
 */

/**
 * Converts an error of a call of an MCP server. An error that the server sent keeps its code, text and data in
 * `data.relayed`, for callers that speak its protocol.
 */
export function upstreamError(thrown: unknown, server: string): RialtoError {
  const known = ownError(thrown);
  if (known) return withServer(known, server);
  const meaning = meaningOf(thrown);
  const error = new RialtoError(meaning.code, { ...meaning, data: { server, ...meaning.data }, cause: thrown });
  if (meaning.message === closedMessage) markDeparted(error);
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
    return invalidAnswer(`the MCP server sent an invalid result${invalidMembers(message)}`);
  if (name === 'SyntaxError') return invalidAnswer('the MCP server answered with a body that is not valid JSON');
  const version = unsupportedVersion.exec(message)?.[1];
  if (version !== undefined)
    return invalidAnswer(
      `the MCP server speaks MCP ${storableText(version, 40)}, ` +
        `which the gateway does not support: ${supportedVersions}`,
    );
  if (code === 'CLIENT_HTTP_UNEXPECTED_CONTENT') return invalidAnswer(`the MCP server answered ${mediaType(data)}`);
  if (noPin.test(message))
    return invalidAnswer('the MCP server does not speak MCP 2026-07-28, which its `era` setting requires');
  if (code === 'CONNECTION_CLOSED' || closed.test(message)) return { code: 'remote_transport', message: closedMessage };
  const { cause } = (thrown ?? {}) as { cause?: unknown };
  return cause instanceof Error && cause !== thrown ? meaningOf(cause) : unreached(thrown);
}

/** Says that no server was reached, with the reason as a text and as a word for programs. */
function unreached(thrown: unknown): Meaning {
  const found = unreachableReason(thrown);
  const message = 'the MCP server could not be reached';
  if (!found) return { code: 'remote_transport', message };
  return { code: 'remote_transport', message: `${message}: ${found.text}`, data: { reason: found.reason } };
}

/* Error texts of the SDK for cases without a code; a test checks each of them against the SDK. */
const unsupportedVersion = /^Server's protocol version is not supported: (.*)$/s;
const posted = /^Error POSTing to endpoint \(HTTP (\d{3})\): (.*)$/s;
const closed = /\bconnection closed\b/i;
const noPin = /did not offer pinned protocol version/;
const supportedVersions = 'it supports 2024-11-05 to 2025-11-25, and 2026-07-28';
const closedMessage = 'the MCP server closed the connection';
const maxDetail = 300;

/** Converts an HTTP error. When its body holds a protocol error, that error is used. */
function refusalOverHttp(thrown: unknown): Meaning | undefined {
  const { code, status: given, message = '', data } = (thrown ?? {}) as Partial<Thrown>;
  const [, postStatus, body] = posted.exec(message) ?? [];
  const isEventStream = typeof thrown === 'object' && thrown !== null && 'event' in thrown;
  const status = given ?? (postStatus !== undefined ? Number(postStatus) : isEventStream ? code : undefined);
  if (typeof status !== 'number') return undefined;
  const isAboutCaller = status === 401 || status === 403;
  const error = isAboutCaller ? undefined : protocolErrorIn(body ?? (data as { text?: unknown } | undefined)?.text);
  if (error) {
    const meaning = relayed(error);
    return { ...meaning, data: { ...meaning.data, upstreamStatus: status } };
  }
  return {
    code: 'remote_transport',
    message: `the MCP server answered HTTP ${status}`,
    data: { upstreamStatus: status },
    ...(status === 401 && {
      hint: 'set the credential in `headers`, or let each user set one with `userCredentials`',
    }),
  };
}

/** Returns the JSON-RPC error in a body. */
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

function invalidAnswer(message: string): Meaning {
  return { code: 'remote_invalid_response', message };
}

/** Lists the members that the SDK found invalid. The SDK gives a JSON list of issues, or a text. */
function invalidMembers(message: string): string {
  const [, words = message] = /^Invalid result for [^:]*: (.*)$/s.exec(message) ?? [];
  const parsed = parseJson(words);
  if (!parsed.ok) return words === '' || words === message ? '' : `: ${storableText(words, maxDetail)}`;
  const issues = Array.isArray(parsed.value) ? parsed.value.filter(isJsonObject) : [];
  const invalidOnes = issues.slice(0, 3).map(({ path, message: what }) => {
    const at = Array.isArray(path) ? path.filter((step) => typeof step !== 'object').join('.') : '';
    const words = typeof what === 'string' ? what : '';
    return words.endsWith('received undefined') ? `${at} is missing` : `${at}: ${words}`;
  });
  return invalidOnes.length === 0 ? '' : storableText(`: ${invalidOnes.join('; ')}`, maxDetail);
}

function mediaType(data: unknown): string {
  const { contentType } = (data ?? {}) as { contentType?: unknown };
  if (typeof contentType !== 'string') return 'without a content type';
  return `with ${storableText(contentType.split(';')[0]!.trim(), 100)} instead of JSON or a stream of events`;
}

/**
 * Adds the server to an error of the gateway's own HTTP client, which does not know it. Removes the host of a refused
 * address, which callers of the tools need not know.
 */
function withServer(known: RialtoError, server: string): RialtoError {
  const { code, message, hint, violations, data } = known;
  if (data?.server !== undefined || code === 'canceled') return known;
  const isBare = code === 'remote_transport' && message === errorCodes.remote_transport.title;
  const bare = isBare ? unreached(known) : undefined;
  const text = code === 'url_not_allowed' ? 'the address of the MCP server may not be called' : message;
  return new RialtoError(code, {
    message: bare?.message ?? text,
    hint,
    violations,
    data: { ...data, ...bare?.data, server },
    cause: known,
  });
}

interface Thrown {
  readonly name: string;
  readonly code: number | string;
  readonly status: number;
  readonly message: string;
  readonly data: unknown;
}

/** Error for a call during the delay after a failed connection. */
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
  return new RialtoError('unavailable', {
    message: 'the gateway closed the connection to the MCP server; call again',
    data: { server },
    cause,
  });
}

/**
 * Returns whether the server forgot the session. It has not executed the request, and requires a new session (MCP
 * Streamable HTTP, sessions).
 */
export function isSessionGone(thrown: unknown): boolean {
  return (thrown as Partial<Thrown> | undefined)?.status === 404;
}

/** Returns whether the server understood the request and refused it, which is no failure of the connection. */
export function isRefusal({ code, data }: RialtoError): boolean {
  if (code === 'remote_error') return true;
  const status = data?.upstreamStatus;
  return typeof status === 'number' && status >= 400 && status < 500 && status !== 401 && status !== 403;
}

/**
 * Finds an error of the gateway: the SDK passes on what its fetch threw, possibly as a cause, and the data of an error
 * answer, which holds a RialtoError when the gateway created that answer.
 */
function ownError(thrown: unknown): RialtoError | undefined {
  const { data } = (thrown ?? {}) as Partial<Thrown>;
  if (data instanceof RialtoError) return data;
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++)
    if (error instanceof RialtoError) return error;
  return undefined;
}
