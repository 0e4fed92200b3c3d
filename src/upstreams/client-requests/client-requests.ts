import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { isLogLevel, weightOf } from '../../protocol/mcp/log-levels.js';
import { isDeeperThan } from '../../protocol/mcp/schema-size.js';
import type { Root } from '../upstream.types.js';
import { maxNesting } from '../upstream-result.js';

/** What an MCP server may ask of its client, and the capability that has it (MCP, client features). */
const askable: Readonly<Record<string, string>> = {
  'sampling/createMessage': 'sampling',
  'elicitation/create': 'elicitation',
  'roots/list': 'roots',
};
/** What a client hears that did not say what it wants to. */
const usualLevel = 'info';
const maxRounds = 10;
/** Of one result. */
const maxQuestions = 100;
/** Names of questions are kept while there may be answers. */
const longestName = 1_024;

const refusedCode = -32_000;
const methodNotFoundCode = -32_601;
const missingCapabilityCode = -32_021;

/** An answer that is none, to a question of a server: an error of the protocol. */
class Refused extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** What we say that our callers can be asked for; who cannot is kept from it by `askPeer`. That roots changed is said on lines of single clients. */
const relayedCapabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } as const;

/** What a line declares. @param owner the one client whose calls it serves; absent: everybody's. */
export function capabilitiesOf(owner: Pick<Peer, 'capabilities'> | undefined, roots: readonly Root[]): JsonObject {
  return { ...(owner?.capabilities ?? relayedCapabilities), ...(roots.length > 0 && { roots: {} }) };
}

/** The answer to a question that needs no caller (AE-65). */
export function rootsAnswer(roots: readonly Root[], method: string): JsonObject | undefined {
  return method === 'roots/list' && roots.length > 0 ? { roots: [...roots] } : undefined;
}

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const logLevelKey = 'io.modelcontextprotocol/logLevel';
/** What it has is asked for as by somebody who can be asked everything: some list less to others. */
export const offering: JsonObject = { [capabilitiesKey]: relayedCapabilities };

/**
 * Hands a question of a server to the one client whose calls it serves. Throws Refused: there is none, or several and nobody knows whom it
 * means; it cannot be asked for that; it refuses (AE-33, AE-64, AE-66).
 */
export async function askPeer(
  peer: Peer | undefined,
  method: string,
  params: JsonObject,
  signal: AbortSignal | undefined,
): Promise<JsonObject> {
  const capability = askable[method];
  if (capability === undefined) throw new Refused(methodNotFoundCode, 'Method not found');
  if (!peer) throw new Refused(refusedCode, `nobody can be asked for ${method} now`);
  if (!canAnswer(peer, capability, params)) throw new Refused(refusedCode, `the caller does not support ${method}`);
  try {
    return await peer.ask(method, params, signal);
  } catch (thrown) {
    const error = RialtoError.from(thrown);
    const { code = refusedCode, message = error.message, data } = (error.data?.relayed ?? {}) as Partial<Refused>;
    throw new Refused(code, message, data);
  }
}

/** Elicitation without a mode is by form, which every client has that has any (specification 2025-11-25, elicitation). */
function canAnswer({ capabilities }: Peer, capability: string, params: JsonObject): boolean {
  const declared = capabilities[capability];
  if (!isJsonObject(declared)) return false;
  return capability !== 'elicitation' || params.mode !== 'url' || isJsonObject(declared.url);
}

/** What MCP has servers say of a line or its lists, which is not for whoever calls just now. */
const ofTheLine = /^notifications\/(?:cancelled|progress|initialized|(?:tools|resources|prompts)\/.*)$/;

/** Hands on what a server says while it serves a call, unless it is a log message less weighty than its hearer wants. */
export function tellPeer(peer: Peer, method: string, params: JsonObject): void {
  if (ofTheLine.test(method) || (method === 'notifications/message' && !isWanted(peer, params.level))) return;
  peer.tell(method, params);
}

/** Whether a level says more than another. */
export function isMoreTalkative(level: string, than: string | undefined): boolean {
  return than === undefined || weightOf(level) < weightOf(than);
}

function isWanted({ era, logLevel = era === 'legacy' ? usualLevel : undefined }: Peer, level: unknown): boolean {
  return logLevel !== undefined && isLogLevel(level) && weightOf(level) >= weightOf(logLevel);
}

/** A result of the 2026-07-28 revision that asks something first. */
export function asksFirst(result: JsonObject): boolean {
  return result.resultType === 'input_required';
}

/**
 * Asks for a result until it is there: what the server wants to know first is asked of the caller and sent with the next request. One
 * that speaks the same revision gets the questions themselves. Throws `remote_invalid_response` for a server that does not stop.
 */
export async function inRounds(
  call: Round,
  send: (answers: JsonObject | undefined) => Promise<JsonObject>,
): Promise<JsonObject> {
  const { peer, roots } = call;
  let answers = peer?.answers;
  for (let round = 0; round < maxRounds; round++) {
    const result = await send(answers);
    if (!asksFirst(result)) return result;
    if (isDeeperThan(result, maxNesting)) throw notAsked();
    const questions = questionsOf(result);
    const isKnown = questions.every(([, { method }]) => rootsAnswer(roots, method));
    if (peer?.era === 'modern' && !isKnown) {
      requireAnswerable(peer, roots, questions);
      return result;
    }
    const { requestState } = result;
    answers = {
      inputResponses: await answerQuestions(call, questions),
      ...(requestState !== undefined && { requestState }),
    };
  }
  throw new RialtoError('remote_invalid_response', { message: `the MCP server asked more than ${maxRounds} times` });
}

/**
 * The questions of a result, by the names it gave them. Throws `remote_invalid_response` for what are none, or more than anybody would
 * answer.
 */
export function questionsOf({ inputRequests = {} }: JsonObject): readonly (readonly [string, Question])[] {
  const entries = isJsonObject(inputRequests) ? Object.entries(inputRequests) : undefined;
  const isOne = ([name, question]: [string, unknown]): boolean => name.length <= longestName && isQuestion(question);
  if (!entries || entries.length > maxQuestions || !entries.every(isOne)) throw notAsked();
  return entries as unknown as [string, Question][];
}

/** Who did not say that it can be asked for something is told what it needs (specification 2026-07-28, MissingRequiredClientCapability). */
function requireAnswerable(peer: Peer, roots: readonly Root[], questions: ReturnType<typeof questionsOf>): void {
  const open = questions.map(([, question]) => question).filter((question) => !isAnswerable(question, peer, roots));
  if (open.length === 0) return;
  const requiredCapabilities: Record<string, JsonObject> = {};
  for (const { method, params } of open)
    Object.assign((requiredCapabilities[askable[method]!] ??= {}), params?.mode === 'url' && { url: {} });
  const message = 'Missing required client capability';
  throw new RialtoError('remote_error', {
    message,
    data: { relayed: { code: missingCapabilityCode, message, data: { requiredCapabilities } } },
  });
}

function notAsked(): RialtoError {
  return new RialtoError('remote_invalid_response', { message: 'the MCP server asks what cannot be asked' });
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
  return Object.hasOwn(askable, question.method) && (question.params === undefined || isJsonObject(question.params));
}

/** Whether somebody can be asked this, or nobody needs to be. */
export function isAnswerable(
  { method, params = {} }: Question,
  peer: Peer | undefined,
  roots: readonly Root[],
): boolean {
  return rootsAnswer(roots, method) !== undefined || (peer !== undefined && canAnswer(peer, askable[method]!, params));
}

/** Where one of them is not answered, nobody waits for the others. */
export async function answerQuestions(
  { peer, roots, signal }: Round,
  questions: ReturnType<typeof questionsOf>,
): Promise<JsonObject> {
  const over = new AbortController();
  const until = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
  const entries = questions.map(async ([name, { method, params = {} }]) => {
    return [name, rootsAnswer(roots, method) ?? (await askPeer(peer, method, params, until))] as const;
  });
  try {
    return Object.fromEntries(await Promise.all(entries));
  } finally {
    over.abort();
  }
}

/** What a request of the 2026-07-28 revision says of its caller. */
export function envelopeOf(
  peer: Peer | undefined,
  roots: readonly Root[],
  capabilities = peer?.capabilities,
): JsonObject {
  return {
    [capabilitiesKey]: { ...capabilities, ...(roots.length > 0 && { roots: {} }) },
    ...(peer?.logLevel !== undefined && { [logLevelKey]: peer.logLevel }),
  };
}

export function tellProgress(peer: Peer | undefined, progress: JsonObject): void {
  if (peer?.progressToken === undefined) return;
  peer.tell('notifications/progress', { ...progress, progressToken: peer.progressToken });
}
