import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { LongLine } from './line-splitter.js';
import { maxNesting } from '../upstream-result.js';

/** Maximum size in bytes of one answer of an MCP server, over any transport. */
export const maxAnswerBytes = 10_485_760;
/** Parser limits, the same as for an answer over HTTP: only the size and the nesting depth are limited. */
const limits = { maxDepth: maxNesting + 2, maxValues: Infinity, maxMembers: Infinity };
const internalErrorCode = -32_603;
const tooLongReason = `more than ${maxAnswerBytes} bytes`;

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

  constructor(
    private readonly deliver: (message: JSONRPCMessage) => void,
    private readonly fail: (error: RialtoError) => void,
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
    const parsed = parseJson(bare, limits);
    if (!parsed.ok) this.unreadable(bare, bare, parsed.reason);
    else for (const message of Array.isArray(parsed.value) ? parsed.value : [parsed.value]) this.handleMessage(message);
  }

  /**
   * Handles a text above the size limit; called once when it exceeds the limit, and again at its end. When it names no
   * request, it was the answer to the request that is left after all others that were open have got theirs.
   */
  tooLong({ head, tail }: LongLine): void {
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
    const parsed = parseJson(tail.slice(Math.max(0, tail.lastIndexOf('{"jsonrpc"'))), limits);
    if (parsed.ok) this.handleMessage(parsed.value);
    return parsed.ok;
  }

  private handleMessage(message: Json): void {
    if (!isJsonObject(message)) return this.fail(invalidMessage());
    if (message.jsonrpc === '2.0' && 'method' in message) return this.deliver(message as unknown as JSONRPCMessage);
    // A server that could not read a request answers it without its id (JSON-RPC 2.0, section 5).
    const answered = message.id === null && isJsonObject(message.error) ? this.only : (message.id as RequestId);
    if (answered === undefined) return this.fail(invalidMessage());
    const problem = problemOf(message);
    if (problem !== undefined && this.open.has(answered)) return void this.endRequest(answered, problem);
    if (problem !== undefined) return this.fail(invalidMessage());
    this.open.delete(answered);
    this.deliver({ ...message, id: answered } as unknown as JSONRPCMessage);
    this.clearOf(answered);
  }

  private unreadable(head: string, tail: string, reason: string): void {
    const named = this.pendingId(beginsWithId, head) ?? this.pendingId(endsWithId, tail.slice(-1_000));
    const meant = named ?? (looksLikeAnswer.test(head) ? this.only : undefined);
    if (!this.endRequest(meant, reason)) this.fail(invalidMessage());
  }

  /** The pending request, when there is exactly one. */
  private get only(): RequestId | undefined {
    return this.open.size === 1 ? this.open.values().next().value : undefined;
  }

  private pendingId(where: RegExp, text: string): RequestId | undefined {
    const written = where.exec(text)?.[1];
    const parsed = written === undefined ? undefined : parseJson(written);
    const known = parsed?.ok ? (parsed.value as RequestId) : undefined;
    return known !== undefined && this.open.has(known) ? known : undefined;
  }

  /**
   * Ends a request with an error. The data of the JSON-RPC error is a RialtoError object, which no server can send;
   * `upstreamError` recognizes it.
   */
  private endRequest(request: RequestId | undefined, reason: string): boolean {
    if (request === undefined) return false;
    this.open.delete(request);
    const message = `the answer of the MCP server is invalid: ${reason}`;
    const data = new RialtoError('remote_invalid_response', { message });
    this.deliver({ jsonrpc: '2.0', id: request, error: { code: internalErrorCode, message, data } });
    if (reason === tooLongReason) this.suspects = undefined;
    else this.clearOf(request);
    return true;
  }
}

function problemOf({ jsonrpc, result, error, ...rest }: JsonObject): string | undefined {
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
