import { isJSONRPCResponse, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { keepOrder as keepOrderOf } from './message-order.js';

const keepOrder = (line: Transport): void => keepOrderOf(line, isJSONRPCResponse);

describe('what a server says on a line', () => {
  it('is handed on in its order, though notices are read a step later than results', async () => {
    const read: string[] = [];
    // As the SDK does: a result is read at once, a notice in a microtask.
    const line = {
      onmessage: (message: JSONRPCMessage) =>
        void ('method' in message ? Promise.resolve().then(() => read.push(message.method)) : read.push('result')),
    } as unknown as Transport;
    keepOrder(line);
    line.onmessage!({ jsonrpc: '2.0', method: 'notifications/progress', params: {} });
    line.onmessage!({ jsonrpc: '2.0', id: 1, result: {} });
    line.onmessage!({ jsonrpc: '2.0', id: 2, result: {} });
    await new Promise((done) => setTimeout(done, 10));
    expect(read).toEqual(['notifications/progress', 'result', 'result']);
  });

  it('ends nobody when it cannot be read', async () => {
    const errors: Error[] = [];
    const broken = new RangeError('Maximum call stack size exceeded');
    const line = {
      onmessage: () => {
        throw broken;
      },
      onerror: (error: Error) => errors.push(error),
    } as unknown as Transport;
    keepOrder(line);
    line.onmessage!({ jsonrpc: '2.0', id: 1, result: {} });
    line.onmessage!({ jsonrpc: '2.0', method: 'notifications/progress', params: {} });
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
  ])('that is to be an answer and is none, such as %j, is an error of ours for whoever asked', async (answer) => {
    const read: any[] = [];
    const line = { onmessage: (message: JSONRPCMessage) => void read.push(message) } as unknown as Transport;
    keepOrder(line);
    line.onmessage!({ jsonrpc: '2.0', id: 7, ...answer } as unknown as JSONRPCMessage);
    await new Promise((done) => setImmediate(done));
    expect(read).toEqual([expect.objectContaining({ id: 7, error: expect.objectContaining({ code: -32_603 }) })]);
    expect(isJSONRPCResponse(read[0])).toBe(true);
    expect(read[0].error.data).toBeInstanceOf(RialtoError);
    expect(read[0].error.data.code).toBe('remote_invalid_response');
  });
});
