import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { errorResponse, jsonRpcCodes, type JsonRpcId } from '../../protocol/jsonrpc.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import type { Incoming } from './mcp-dispatch.js';

const maxAnswers = 8 * 1_048_576;

/** Limits the cost of one batch: one rate-limit token for each message, one list of tools, 8 MiB of answers. */
export class BatchGate {
  private messages = 0;
  private lists = 0;
  private length = 0;

  /**
   * `admit` charges one message and throws `rate_limited`; the door has charged the first message. `max` is in UTF-16
   * units.
   */
  constructor(
    private readonly admit: () => void,
    private readonly max = maxAnswers,
  ) {}

  /** Returns the message, or the answer that refuses it; undefined for a notification over the limit. */
  enter(message: Incoming): Incoming | undefined {
    this.messages += 1;
    const id = message.kind === 'request' ? message.request.id : null;
    try {
      if (this.messages > 1) this.admit();
    } catch (thrown) {
      return message.kind === 'notification' ? undefined : { kind: 'invalid', response: failure(id, thrown) };
    }
    if (message.kind !== 'request') return message;
    if (message.request.method === 'initialize')
      return { kind: 'invalid', response: refusedInitialize(message.request.id) };
    if (message.request.method !== 'tools/list') return message;
    this.lists += 1;
    return this.lists === 1 ? message : { kind: 'invalid', response: refusedSecondList(message.request.id) };
  }

  /** Returns the answer to a message, or an error when it no longer fits into the answer of the batch. */
  leave(message: Incoming, text: string): string {
    if (this.length + text.length > this.max && message.kind === 'request')
      return refusedAnswer(message.request.id, this.max);
    this.length += text.length;
    return text;
  }
}

/** Refuses `initialize` in a batch (MCP 2025-03-26, lifecycle). */
function refusedInitialize(id: JsonRpcId): string {
  return JSON.stringify(
    errorResponse(id, jsonRpcCodes.invalidRequest, 'Invalid Request: initialize must not be in a batch'),
  );
}

function refusedSecondList(id: JsonRpcId): string {
  const reason = 'Invalid Request: a batch has at most one tools/list';
  return JSON.stringify(errorResponse(id, jsonRpcCodes.invalidRequest, reason));
}

function refusedAnswer(id: JsonRpcId, max: number): string {
  return failure(
    id,
    new RialtoError('too_large', {
      message:
        `the answers of a batch have at most ${max} characters: ` +
        'this request was served, but its answer is omitted',
      hint: 'send requests with large answers one by one',
    }),
  );
}

function failure(id: JsonRpcId | null, thrown: unknown): string {
  const { code, message, data } = mcpError(thrown);
  return JSON.stringify(errorResponse(id, code, message, data as JsonObject));
}
