import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { LongLine } from './line-splitter.js';
import { maxNesting } from '../upstream-result.js';

/** What an MCP server may answer at once, however it is connected. */
export const maxAnswerBytes = 10_485_760;
/** Those of an answer over HTTP: its size alone, and how deep it nests. */
const limits = { maxDepth: maxNesting + 2, maxValues: Infinity, maxMembers: Infinity };
const internalErrorCode = -32_603;

/** An id where it can only be that of the message: before anything that may be large, or at the very end. */
const beginsWithId =
  /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d{1,16}|"(?:[^"\\]|\\.){0,200}")\s*[,}]/;
const endsWithId = /,\s*"id"\s*:\s*(-?\d{1,16}|"(?:[^"\\]|\\.){0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;
const looksLikeAnswer = /^\s*\{(?=.*"(?:jsonrpc|result|error)")/s;

/**
 * Reads the messages of a server of which each is a text. An answer that cannot be taken ends the request that it is for, with the
 * reason: nothing else would come, and the call would wait for its whole timeout.
 */
export class AnswerReader {
  private readonly open = new Set<RequestId>();
  private isLongSettled = false;

  constructor(
    private readonly hear: (message: JSONRPCMessage) => void,
    private readonly fail: (error: RialtoError) => void,
  ) {}

  /** Has each message that goes out, before it does. */
  sends(message: JSONRPCMessage): void {
    if (!('method' in message)) return;
    if ('id' in message) this.open.add(message.id);
    if (message.method === 'notifications/cancelled') this.open.delete(message.params?.requestId as RequestId);
  }

  /** A byte order mark at its beginning is passed over (RFC 8259, section 8.1). */
  read(text: string): void {
    const bare = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    if (bare.trim() === '') return;
    const parsed = parseJson(bare, limits);
    if (!parsed.ok) this.unreadable(bare, bare, parsed.reason);
    else for (const message of Array.isArray(parsed.value) ? parsed.value : [parsed.value]) this.take(message);
  }

  /** A text of which more came than may; said once it is, and again at its end. */
  tooLong({ head, tail }: LongLine): void {
    const reason = `more than ${maxAnswerBytes} bytes`;
    if (tail === undefined) this.isLongSettled = this.refuseOne(this.named(beginsWithId, head) ?? this.only, reason);
    else if (!this.tookLast(tail) && !this.isLongSettled) this.unreadable(head, tail, reason);
  }

  /** What a program printed without an end of its line stands before its next message. */
  private tookLast(tail: string): boolean {
    const parsed = parseJson(tail.slice(Math.max(0, tail.lastIndexOf('{"jsonrpc"'))), limits);
    if (parsed.ok) this.take(parsed.value);
    return parsed.ok;
  }

  private take(message: Json): void {
    if (!isJsonObject(message)) return this.fail(noMessage());
    if (message.jsonrpc === '2.0' && 'method' in message) return this.hear(message as unknown as JSONRPCMessage);
    // Who could not read a request answers it without its id (JSON-RPC 2.0, section 5).
    const answered = message.id === null && isJsonObject(message.error) ? this.only : (message.id as RequestId);
    if (answered === undefined) return this.fail(noMessage());
    const wrong = whatIsWrong(message);
    if (wrong !== undefined && this.open.has(answered)) return void this.refuseOne(answered, wrong);
    if (wrong !== undefined) return this.fail(noMessage());
    this.open.delete(answered);
    this.hear({ ...message, id: answered } as unknown as JSONRPCMessage);
  }

  private unreadable(head: string, tail: string, reason: string): void {
    const named = this.named(beginsWithId, head) ?? this.named(endsWithId, tail.slice(-1_000));
    const meant = named ?? (looksLikeAnswer.test(head) ? this.only : undefined);
    if (!this.refuseOne(meant, reason)) this.fail(noMessage());
  }

  /** The request that waits, where there is one alone. */
  private get only(): RequestId | undefined {
    return this.open.size === 1 ? this.open.values().next().value : undefined;
  }

  private named(where: RegExp, text: string): RequestId | undefined {
    const written = where.exec(text)?.[1];
    const parsed = written === undefined ? undefined : parseJson(written);
    const known = parsed?.ok ? (parsed.value as RequestId) : undefined;
    return known !== undefined && this.open.has(known) ? known : undefined;
  }

  /** An error of ours is the data of an error of the protocol, which no server can say: `upstreamError` knows it. */
  private refuseOne(request: RequestId | undefined, reason: string): boolean {
    if (request === undefined) return false;
    this.open.delete(request);
    const message = `the answer of the MCP server cannot be taken: ${reason}`;
    const data = new RialtoError('remote_invalid_response', { message });
    this.hear({ jsonrpc: '2.0', id: request, error: { code: internalErrorCode, message, data } });
    return true;
  }
}

function whatIsWrong({ jsonrpc, result, error, ...rest }: JsonObject): string | undefined {
  if (jsonrpc !== '2.0') return '"jsonrpc" is not "2.0"';
  if (typeof rest.id !== 'number' && typeof rest.id !== 'string' && rest.id !== null) return 'its id is none';
  if (error === undefined) return isJsonObject(result) ? undefined : 'its result is no object';
  if (result !== undefined) return 'it has a result and an error';
  const isError = isJsonObject(error) && Number.isInteger(error.code) && typeof error.message === 'string';
  return isError ? undefined : 'its error is none';
}

function noMessage(): RialtoError {
  return new RialtoError('remote_invalid_response', { message: 'the MCP server said what is no message' });
}
