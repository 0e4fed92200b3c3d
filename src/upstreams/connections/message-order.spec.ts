import { isJSONRPCResponse, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { keepOrder as keepOrderOf } from './message-order.js';

const keepOrder = (transport: Transport): void => keepOrderOf(transport, isJSONRPCResponse);

describe('keepOrder', () => {
  it('keeps the order of messages, although the SDK reads notifications later than results', async () => {
    const read: string[] = [];
    // Like the SDK: it reads a result at once, and a notification in a microtask.
    const transport = {
      onmessage: (message: JSONRPCMessage) =>
        void ('method' in message ? Promise.resolve().then(() => read.push(message.method)) : read.push('result')),
    } as unknown as Transport;
    keepOrder(transport);
    transport.onmessage!({ jsonrpc: '2.0', method: 'notifications/progress', params: {} });
    transport.onmessage!({ jsonrpc: '2.0', id: 1, result: {} });
    transport.onmessage!({ jsonrpc: '2.0', id: 2, result: {} });
    await new Promise((done) => setTimeout(done, 10));
    expect(read).toEqual(['notifications/progress', 'result', 'result']);
  });

  it('reports a message that cannot be read, and continues', async () => {
    const errors: Error[] = [];
    const broken = new RangeError('Maximum call stack size exceeded');
    const transport = {
      onmessage: () => {
        throw broken;
      },
      onerror: (error: Error) => errors.push(error),
    } as unknown as Transport;
    keepOrder(transport);
    transport.onmessage!({ jsonrpc: '2.0', id: 1, result: {} });
    transport.onmessage!({ jsonrpc: '2.0', method: 'notifications/progress', params: {} });
    await new Promise((done) => setTimeout(done, 10));
    expect(errors).toEqual([broken, broken]);
  });

  it.each([
    { result: 'text' },
    { result: null },
    {},
    { result: {}, error: { code: 1, message: 'both' } },
    { error: { code: 'x', message: 'no' } },
    { error: null },
    { result: { _meta: 3 } },
  ])('turns an invalid answer, such as %j, into an error of the gateway for the caller', async (answer) => {
    const read: any[] = [];
    const transport = { onmessage: (message: JSONRPCMessage) => void read.push(message) } as unknown as Transport;
    keepOrder(transport);
    transport.onmessage!({ jsonrpc: '2.0', id: 7, ...answer } as unknown as JSONRPCMessage);
    await new Promise((done) => setImmediate(done));
    expect(read).toEqual([expect.objectContaining({ id: 7, error: expect.objectContaining({ code: -32_603 }) })]);
    expect(isJSONRPCResponse(read[0])).toBe(true);
    expect(read[0].error.data).toBeInstanceOf(RialtoError);
    expect(read[0].error.data.code).toBe('remote_invalid_response');
  });
});
