import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { keepOrder } from './message-order.js';

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
});
