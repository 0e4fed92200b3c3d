import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { atOnce, isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { OrderedWork } from '../../platform/ordered-work.js';
import { CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { inTurns, longText, parseLongJson } from '../../platform/turns.js';
import type { JsonLimits } from '../../protocol/json-text.js';
import { parseJson, type ParsedJson } from '../../protocol/jsonrpc.js';
import type { LongLine } from './line-splitter.js';
import { maxNesting } from '../upstream-result.js';

/** Maximum size in bytes of one answer of an MCP server, over any transport. */
export const maxAnswerBytes = 10_485_760;
/**
 * Maximum number of lines of an MCP server in one turn of the event loop: an endless output must not block other work.
 */
export const linesInOneTurn = 60;
/** Maximum number of invalid messages that are reported: an error has a stack, which takes longer than its message. */
const reportsPerSecond = 10;
/**
 * Limits of the parser, larger than those of requests: the answer of a server may be a table. An answer wraps its
 * result in a few levels more.
 */
const answerLimits = {
  maxDepth: maxNesting + 2,
  maxValues: 1_000_000,
  maxMembers: 100_000,
  maxLongIntegers: 100_000,
};
/** Characters of a text that may nest to any depth. */
const maxDeepLength = 1_048_576;
const internalErrorCode = -32_603;
export const tooLongReason = `more than ${maxAnswerBytes} bytes`;

/** Match an id only where it must be the id of the message: before anything that may be large, or at the very end. */
const beginsWithId =
  /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d{1,16}|"(?:[^"\\]|\\.){0,200}")\s*[,}]/;
const endsWithId = /,\s*"id"\s*:\s*(-?\d{1,16}|"(?:[^"\\]|\\.){0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
const looksLikeAnswer = /^\s*\{(?=.*"(?:jsonrpc|result|error)")/s;

/**
 * Reads the messages of a server, one per text. An answer that cannot be read ends its request with the reason:
 * otherwise the call would wait until its timeout.
 */
export class AnswerReader {
  private readonly open = new Set<RequestId>();
  private isLongEnded = false;
  /** Requests of which one got the last answer above the size limit; undefined when that one is known. */
  private suspects?: Set<RequestId>;
  private reports = 0;
  private reportsSince = -Infinity;
  private readonly texts = new OrderedWork((thrown) => this.fail(RialtoError.from(thrown)));

  /** @param remover removes the credentials of the connection from each message. */
  constructor(
    private readonly deliver: (message: JSONRPCMessage) => void,
    private readonly fail: (error: RialtoError) => void,
    private readonly remover = new CredentialRemover([]),
  ) {}

  /** Records an outgoing message before it is sent. */
  sends(message: JSONRPCMessage): void {
    if (!('method' in message)) return;
    if ('id' in message) this.open.add(message.id);
    if (message.method !== 'notifications/cancelled') return;
    const canceled = message.params?.requestId as RequestId;
    this.open.delete(canceled);
    // The long answer may have been its own: then the others still wait for theirs.
    if (this.suspects?.has(canceled)) this.suspects = undefined;
  }

  /** Reads one text. Ignores a byte order mark at its beginning (RFC 8259, section 8.1). */
  readText(text: string): void {
    const bare = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    if (bare.trim() === '') return;
    if (bare.length < longText) this.afterOthers(() => this.handleText(bare, this.readAtOnce(bare)));
    else {
      const asked = new Set(this.open); // the text cannot answer a request that is sent while it is parsed
      this.afterOthers(async () => this.handleText(bare, await this.readLong(bare), asked));
    }
  }

  /**
   * Handles a text above the size limit; called once when it exceeds the limit, and again at its end. When it names no
   * request, it was the answer to the request that is left after all others that were open have got theirs.
   */
  tooLong(line: LongLine): void {
    this.afterOthers(() => this.handleTooLong(line));
  }

  /** True while a long text is being parsed. */
  get isReading(): boolean {
    return this.texts.isBusy;
  }

  /** Resolves when all texts until now were read. */
  get read(): Promise<void> {
    return new Promise((resolve) => this.afterOthers(resolve));
  }

  /** Runs work after all texts until now were read: at once, unless a long one is being parsed. */
  afterOthers(work: () => void | Promise<void>): void {
    void this.texts.run(work);
  }

  private reportInvalid(): void {
    const now = performance.now();
    if (now - this.reportsSince >= 1_000) [this.reports, this.reportsSince] = [0, now];
    if (++this.reports <= reportsPerSecond) this.fail(invalidMessage());
  }

  private readAtOnce(text: string): ParsedJson {
    const parsed = parseJson(text, answerLimits);
    return parsed.ok ? { ok: true, value: atOnce(this.remover.cleaning(parsed.value)) } : parsed;
  }

  private async readLong(text: string): Promise<ParsedJson> {
    const parsed = await parseLongJson(text, answerLimits);
    return parsed.ok ? { ok: true, value: await inTurns(this.remover.cleaning(parsed.value)) } : parsed;
  }

  private handleText(text: string, parsed: ParsedJson, asked = this.open): void {
    if (!parsed.ok) return this.unreadable(text, text, parsed.reason, asked);
    for (const message of Array.isArray(parsed.value) ? parsed.value : [parsed.value])
      this.handleMessage(message, asked);
  }

  private handleTooLong({ head, tail }: LongLine): void {
    if (tail === undefined) {
      const named = this.pendingId(beginsWithId, head);
      this.isLongEnded = this.endRequest(named, tooLongReason);
      this.suspects = this.isLongEnded ? undefined : new Set(this.open);
      this.endLastSuspect();
    } else if (!this.handledLast(tail) && !this.isLongEnded) this.unreadable(head, tail, tooLongReason);
  }

  /** A request with an answer of its own did not get the long one. */
  private clearOf(answered: RequestId): void {
    if (this.suspects?.delete(answered)) this.endLastSuspect();
  }

  private endLastSuspect(): void {
    if (this.suspects?.size !== 1) return;
    const [last] = this.suspects;
    this.isLongEnded = this.endRequest(last, tooLongReason);
  }

  /**
   * Reads the message at the end of a long line: a program may print text without a line end before its next message.
   */
  private handledLast(tail: string): boolean {
    const parsed = this.readAtOnce(tail.slice(Math.max(0, tail.lastIndexOf('{"jsonrpc"'))));
    if (parsed.ok) this.handleMessage(parsed.value);
    return parsed.ok;
  }

  private handleMessage(message: Json, asked = this.open): void {
    if (!isJsonObject(message)) return this.reportInvalid();
    if (message.jsonrpc === '2.0' && 'method' in message) return this.deliver(message as unknown as JSONRPCMessage);
    // A server that could not read a request answers it without its id (JSON-RPC 2.0, section 5).
    const answered =
      message.id === null && isJsonObject(message.error) ? this.onlyOf(asked) : (message.id as RequestId);
    if (answered === undefined) return this.reportInvalid();
    const problem = faultOfAnswer(message);
    if (problem !== undefined && this.open.has(answered)) return void this.endRequest(answered, problem);
    if (problem !== undefined) return this.reportInvalid();
    this.open.delete(answered);
    this.deliver({ ...message, id: answered } as unknown as JSONRPCMessage);
    this.clearOf(answered);
  }

  private unreadable(head: string, tail: string, reason: string, asked = this.open): void {
    const named = this.pendingId(beginsWithId, head) ?? this.pendingId(endsWithId, tail.slice(-1_000));
    const meant = named ?? (looksLikeAnswer.test(head) ? this.onlyOf(asked) : undefined);
    if (!this.endRequest(meant, reason)) this.reportInvalid();
  }

  /** Returns the request among these that is still open, when there is exactly one. */
  private onlyOf(asked: ReadonlySet<RequestId>): RequestId | undefined {
    const open = [...asked].filter((id) => this.open.has(id));
    return open.length === 1 ? open[0] : undefined;
  }

  private pendingId(where: RegExp, text: string): RequestId | undefined {
    const known = idIn(where, text);
    return known !== undefined && this.open.has(known) ? known : undefined;
  }

  /** Ends a request with an error. */
  private endRequest(request: RequestId | undefined, reason: string): boolean {
    if (request === undefined) return false;
    this.open.delete(request);
    this.deliver(refusal(request, reason));
    if (reason === tooLongReason) this.suspects = undefined;
    else this.clearOf(request);
    return true;
  }
}

/**
 * Returns the limits of a text over HTTP. A text that is not very long may nest to any depth, because only the item
 * that does is refused: other tools of a list stay.
 */
export function webLimits(text: string): JsonLimits {
  return text.length > maxDeepLength ? answerLimits : { ...answerLimits, maxDepth: maxDeepLength };
}

/** Returns the id that an unread answer has at its beginning or end; undefined when it has none there. */
export function idOfUnread(text: string): RequestId | undefined {
  return idIn(beginsWithId, text) ?? idIn(endsWithId, text.slice(-1_000));
}

function idIn(where: RegExp, text: string): RequestId | undefined {
  const written = where.exec(text)?.[1];
  const parsed = written === undefined ? undefined : parseJson(written);
  return parsed?.ok ? (parsed.value as RequestId) : undefined;
}

/**
 * Builds the error that ends a request without a valid answer. Its data is a RialtoError object, which no server can
 * send; `upstreamError` recognizes it.
 */
export function refusal(id: RequestId, reason: string): JSONRPCMessage {
  const data = invalidAnswer(reason);
  return { jsonrpc: '2.0', id, error: { code: internalErrorCode, message: data.message, data } };
}

export function invalidAnswer(reason: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the answer of the MCP server is invalid: ${reason}` });
}

/** Says why a message is not a JSON-RPC response; undefined for one that is. */
export function faultOfAnswer({ jsonrpc, result, error, ...rest }: JsonObject): string | undefined {
  if (jsonrpc !== '2.0') return '"jsonrpc" is not "2.0"';
  if (typeof rest.id !== 'number' && typeof rest.id !== 'string' && rest.id !== null)
    return '"id" is not a string, a number or null';
  if (error === undefined) return isJsonObject(result) ? undefined : '"result" is not an object';
  if (result !== undefined) return 'it has both "result" and "error"';
  const isError = isJsonObject(error) && Number.isInteger(error.code) && typeof error.message === 'string';
  return isError ? undefined : '"error" has no valid code and message';
}

function invalidMessage(): RialtoError {
  return new RialtoError('remote_invalid_response', {
    message: 'the MCP server sent something that is not a JSON-RPC message',
  });
}
