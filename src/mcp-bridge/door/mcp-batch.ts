import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { errorResponse, jsonRpcCodes, type JsonRpcId } from '../../protocol/jsonrpc.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import type { Incoming } from './mcp-dispatch.js';

const maxAnswers = 8 * 1_048_576;

/** What one batch may cost: a rate-limit token a message, one list of tools, 8 MiB of answers. */
export class BatchGate {
  private messages = 0;
  private lists = 0;
  private length = 0;

  /** `admit` charges one message and throws `rate_limited`; the door has charged the first. `max` is in UTF-16 units. */
  constructor(
    private readonly admit: () => void,
    private readonly max = maxAnswers,
  ) {}

  /** The message, or the answer that refuses it; undefined for a notification that is one too many. */
  enter(message: Incoming): Incoming | undefined {
    this.messages += 1;
    const id = message.kind === 'request' ? message.request.id : null;
    try {
      if (this.messages > 1) this.admit();
    } catch (thrown) {
      return message.kind === 'notification' ? undefined : { kind: 'invalid', response: failure(id, thrown) };
    }
    if (message.kind !== 'request') return message;
    if (message.request.method === 'initialize') return { kind: 'invalid', response: opening(message.request.id) };
    if (message.request.method !== 'tools/list') return message;
    this.lists += 1;
    return this.lists === 1 ? message : { kind: 'invalid', response: secondList(message.request.id) };
  }

  /** The answer to a message, or what is said in its place when it does not fit in the batch's answer any more. */
  leave(message: Incoming, text: string): string {
    if (this.length + text.length > this.max && message.kind === 'request')
      return tooMuch(message.request.id, this.max);
    this.length += text.length;
    return text;
  }
}

/** MCP 2025-03-26, lifecycle. */
function opening(id: JsonRpcId): string {
  return JSON.stringify(errorResponse(id, jsonRpcCodes.invalidRequest, 'Invalid Request: initialize comes alone'));
}

function secondList(id: JsonRpcId): string {
  const reason = 'Invalid Request: a batch holds one tools/list at most';
  return JSON.stringify(errorResponse(id, jsonRpcCodes.invalidRequest, reason));
}

function tooMuch(id: JsonRpcId, max: number): string {
  return failure(
    id,
    new RialtoError('too_large', {
      message: `the answers of a batch hold ${max} characters at most: this request was served, its answer is left out`,
      hint: 'send requests with large answers one by one',
    }),
  );
}

function failure(id: JsonRpcId | null, thrown: unknown): string {
  const { code, message, data } = mcpError(thrown);
  return JSON.stringify(errorResponse(id, code, message, data as JsonObject));
}
