import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { inTurns } from '../../platform/turns.js';
import { isLogLevel, weightOf } from '../../protocol/mcp/log-levels.js';
import { measuringDepth } from '../../protocol/mcp/schema/schema-size.js';
import type { Root } from '../upstream.types.js';
import { maxNesting } from '../upstream-result.js';
import { metaKeys } from '../../protocol/mcp/meta.js';

/** Requests that an MCP server may send to its client, and the capability for each (MCP, client features). */
const capabilityOf: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};
/** Log level for a client that did not set one. */
const defaultLevel = 'info';
/** Maximum number of requests in one call of a server that asks for input first. */
export const maxRounds = 10;
/** Maximum number of questions in one result. */
const maxQuestions = 100;
/** Maximum length of the name of a question. The names are stored until the questions are answered. */
const maxNameLength = 1_024;

const refusedCode = -32_000;
const methodNotFoundCode = -32_601;
const missingCapabilityCode = -32_021;

/** A JSON-RPC error as the answer to a request of a server. */
class Refused extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/**
 * Capabilities of a connection that many callers share. `askPeer` refuses a request that the caller does not support.
 * `roots.listChanged` is declared only on connections of single clients.
 */
const relayedCapabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } as const;

/**
 * Returns the capabilities that a connection declares.
 * @param owner the only client that the connection serves; absent for a shared connection.
 */
export function capabilitiesOf(owner: Pick<Peer, 'capabilities'> | undefined, roots: readonly Root[]): JsonObject {
  return { ...(owner?.capabilities ?? relayedCapabilities), ...(roots.length > 0 && { roots: {} }) };
}

/** Answers a request that needs no caller: `roots/list` of a server with configured roots (AE-65). */
export function rootsAnswer(roots: readonly Root[], method: string): JsonObject | undefined {
  return method === 'roots/list' && roots.length > 0 ? { roots: [...roots] } : undefined;
}

/**
 * `_meta` of the requests that read an offer. It declares all capabilities, because some servers list less to clients
 * without them.
 */
export const offering: JsonObject = { [metaKeys.clientCapabilities]: relayedCapabilities };

/**
 * Passes a request of a server on to the client of the running call. Throws Refused when there is no client, or when
 * there are several and the server does not say which call it means; when the client did not declare the capability;
 * and when the client refuses (AE-33, AE-64, AE-66).
 */
export async function askPeer(
  peer: Peer | undefined,
  method: string,
  params: JsonObject,
  signal: AbortSignal | undefined,
): Promise<JsonObject> {
  const capability = capabilityOf[method];
  if (capability === undefined) throw new Refused(methodNotFoundCode, 'Method not found');
  if (!peer) throw new Refused(refusedCode, `no client can be asked for ${method} now`);
  if (!canAnswer(peer, capability, params)) throw new Refused(refusedCode, `the caller does not support ${method}`);
  try {
    return await peer.ask(method, params, signal);
  } catch (thrown) {
    const error = RialtoError.from(thrown);
    const { code = refusedCode, message = error.message, data } = (error.data?.relayed ?? {}) as Partial<Refused>;
    throw new Refused(code, message, data);
  }
}

/**
 * Elicitation without a mode uses a form, which each client with the elicitation capability supports (specification
 * 2025-11-25, elicitation).
 */
function canAnswer({ capabilities }: Peer, capability: string, params: JsonObject): boolean {
  const declared = capabilities[capability];
  if (!isJsonObject(declared)) return false;
  return capability !== 'elicitation' || params.mode !== 'url' || isJsonObject(declared.url);
}

/** Notifications about a connection or its lists (MCP). They are not meant for the client of the running call. */
const connectionNotifications = /^notifications\/(?:cancelled|progress|initialized|(?:tools|resources|prompts)\/.*)$/;

/**
 * Passes a notification on to the client of the running call. Drops log messages below the level that the client wants.
 */
export function tellPeer(peer: Peer, method: string, params: JsonObject): void {
  if (connectionNotifications.test(method) || (method === 'notifications/message' && !isWanted(peer, params.level)))
    return;
  peer.tell(method, params);
}

/** Returns whether a log level is more verbose than another. */
export function isMoreTalkative(level: string, than: string | undefined): boolean {
  return than === undefined || weightOf(level) < weightOf(than);
}

function isWanted({ era, logLevel = era === 'legacy' ? defaultLevel : undefined }: Peer, level: unknown): boolean {
  return logLevel !== undefined && isLogLevel(level) && weightOf(level) >= weightOf(logLevel);
}

/** Returns whether a result of the 2026-07-28 revision asks for input first. */
export function asksFirst(result: JsonObject): boolean {
  return result.resultType === 'input_required';
}

/**
 * Answers the questions of a result that asks for input first: returns the members to add to the next request. A caller
 * that speaks the same revision gets the questions themselves; then returns undefined. Throws `remote_invalid_response`
 * for malformed questions, and what the caller answers instead of a result.
 */
export async function answersTo(result: JsonObject, call: Round): Promise<JsonObject | undefined> {
  const { peer, roots } = call;
  if (await inTurns(measuringDepth(result, maxNesting))) throw invalidQuestions();
  const questions = questionsOf(result);
  const isKnown = questions.every(([, { method }]) => rootsAnswer(roots, method));
  if (peer?.era === 'modern' && !isKnown) {
    requireAnswerable(peer, roots, questions);
    return undefined;
  }
  const { requestState } = result;
  return {
    inputResponses: await answerQuestions(call, questions),
    ...(requestState !== undefined && { requestState }),
  };
}

/** Error for a server that does not stop asking. */
export function tooManyRounds(): RialtoError {
  return new RialtoError('remote_invalid_response', {
    message: `the MCP server asked for input more than ${maxRounds} times in one call`,
  });
}

/**
 * Returns the questions of a result with their names. Throws `remote_invalid_response` for malformed or too many
 * questions.
 */
export function questionsOf({ inputRequests = {} }: JsonObject): readonly (readonly [string, Question])[] {
  const entries = isJsonObject(inputRequests) ? Object.entries(inputRequests) : undefined;
  const isOne = ([name, question]: [string, unknown]): boolean => name.length <= maxNameLength && isQuestion(question);
  if (!entries || entries.length > maxQuestions || !entries.every(isOne)) throw invalidQuestions();
  return entries as unknown as [string, Question][];
}

/**
 * Throws an error with the missing capabilities for a caller that did not declare them (specification 2026-07-28,
 * MissingRequiredClientCapability).
 */
function requireAnswerable(peer: Peer, roots: readonly Root[], questions: ReturnType<typeof questionsOf>): void {
  const open = questions.map(([, question]) => question).filter((question) => !isAnswerable(question, peer, roots));
  if (open.length === 0) return;
  const requiredCapabilities: Record<string, JsonObject> = {};
  for (const { method, params } of open)
    Object.assign((requiredCapabilities[capabilityOf[method]!] ??= {}), params?.mode === 'url' && { url: {} });
  const message = 'Missing required client capability';
  throw new RialtoError('remote_error', {
    message,
    data: { relayed: { code: missingCapabilityCode, message, data: { requiredCapabilities } } },
  });
}

function invalidQuestions(): RialtoError {
  return new RialtoError('remote_invalid_response', { message: 'the MCP server sent malformed or too many questions' });
}

interface Round {
  readonly peer: Peer | undefined;
  readonly roots: readonly Root[];
  readonly signal: AbortSignal | undefined;
}

interface Question {
  readonly method: string;
  readonly params?: JsonObject;
}

function isQuestion(question: unknown): boolean {
  if (!isJsonObject(question) || typeof question.method !== 'string') return false;
  return (
    Object.hasOwn(capabilityOf, question.method) && (question.params === undefined || isJsonObject(question.params))
  );
}

/** Returns whether the peer can answer a question, or the gateway can answer it itself. */
export function isAnswerable(
  { method, params = {} }: Question,
  peer: Peer | undefined,
  roots: readonly Root[],
): boolean {
  return (
    rootsAnswer(roots, method) !== undefined || (peer !== undefined && canAnswer(peer, capabilityOf[method]!, params))
  );
}

/** Answers all questions. When one of them fails, the others are canceled. */
export async function answerQuestions(
  { peer, roots, signal }: Round,
  questions: ReturnType<typeof questionsOf>,
): Promise<JsonObject> {
  const done = new AbortController();
  const abortSignal = signal ? AbortSignal.any([signal, done.signal]) : done.signal;
  const entries = questions.map(async ([name, { method, params = {} }]) => {
    return [name, rootsAnswer(roots, method) ?? (await askPeer(peer, method, params, abortSignal))] as const;
  });
  try {
    return Object.fromEntries(await Promise.all(entries));
  } finally {
    done.abort();
  }
}

/** Builds the `_meta` members that describe the caller in a request of the 2026-07-28 revision. */
export function envelopeOf(
  peer: Peer | undefined,
  roots: readonly Root[],
  capabilities = peer?.capabilities,
): JsonObject {
  return {
    [metaKeys.clientCapabilities]: { ...capabilities, ...(roots.length > 0 && { roots: {} }) },
    ...(peer?.logLevel !== undefined && { [metaKeys.logLevel]: peer.logLevel }),
  };
}

export function tellProgress(peer: Peer | undefined, progress: JsonObject): void {
  if (peer?.progressToken === undefined) return;
  peer.tell('notifications/progress', { ...progress, progressToken: peer.progressToken });
}
