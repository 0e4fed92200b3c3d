import type { JSONRPCMessage, JSONRPCResponse, Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { wrapTask } from './task-handle.js';

const internalErrorCode = -32_603;

/**
 * Keeps the order of incoming messages. The SDK reads notifications later than results, so the last progress before a
 * result would arrive after it. A message that the SDK cannot read, for example because it nests too deep, is only
 * reported as an error of the connection; an invalid answer ends its request.
 * @param isResponse the check that the SDK uses for responses.
 */
export function keepOrder(transport: Transport, isResponse: (message: unknown) => boolean): void {
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if ('method' in message) attempt(transport, () => deliver?.(message, extra));
    else
      setImmediate(() =>
        attempt(transport, () => deliver?.(isResponse(message) ? wrapTask(message) : invalidResponse(message), extra)),
      );
  };
}

/**
 * Builds an error for an invalid answer: the SDK would drop it, and its caller would wait on. The data of the error is
 * a RialtoError object, which no server can send; `upstreamError` recognizes it.
 */
function invalidResponse({ id }: Pick<JSONRPCResponse, 'id'>): JSONRPCMessage {
  const data = new RialtoError('remote_invalid_response', {
    message: 'the MCP server sent something that is not a JSON-RPC response',
  });
  return { jsonrpc: '2.0', id, error: { code: internalErrorCode, message: data.message, data } };
}

function attempt(transport: Transport, work: () => void): void {
  try {
    work();
  } catch (error) {
    transport.onerror?.(error as Error);
  }
}
