import type { JSONRPCMessage, JSONRPCResponse, Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { wrapTask } from './task-handle.js';

const internalErrorCode = -32_603;

/**
 * The SDK reads notices a step later than results: the last progress before a result would find nobody. What it cannot read, be it nested
 * too deep to be told of, is an error of the line and no more; but an answer that is none ends what it answers.
 * @param isResponse as the SDK judges what it takes for one.
 */
export function keepOrder(line: Transport, isResponse: (message: unknown) => boolean): void {
  const deliver = line.onmessage;
  line.onmessage = (message, extra) => {
    if ('method' in message) attempt(line, () => deliver?.(message, extra));
    else
      setImmediate(() =>
        attempt(line, () => deliver?.(isResponse(message) ? wrapTask(message) : refusalOf(message), extra)),
      );
  };
}

/** The SDK drops such an answer, and its caller would wait on. An error of ours is its data, which no server can say: `upstreamError` knows it. */
function refusalOf({ id }: Pick<JSONRPCResponse, 'id'>): JSONRPCMessage {
  const data = new RialtoError('remote_invalid_response', { message: 'the MCP server answered what is no response' });
  return { jsonrpc: '2.0', id, error: { code: internalErrorCode, message: data.message, data } };
}

function attempt(line: Transport, work: () => void): void {
  try {
    work();
  } catch (error) {
    line.onerror?.(error as Error);
  }
}
