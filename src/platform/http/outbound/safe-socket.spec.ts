import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { parseAllowList } from './address.js';
import { openSafeSocket } from './safe-socket.js';

describe('an outbound WebSocket', () => {
  it('emits one message in each turn of the event loop, so that a busy peer does not block others', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(server, 'listening');
    server.on('connection', (peer) => {
      peer.on('message', () => {
        for (let count = 0; count < 1_000; count++) peer.send('{}');
      });
    });
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const socket = await openSafeSocket(
      url,
      { allow: parseAllowList('127.0.0.1'), httpsOnly: false },
      { headers: {}, subprotocol: 'mcp', maxBytes: 1_000 },
    );
    let received = 0;
    socket.on('message', () => received++);
    socket.send('{}');
    const inOneTurn: number[] = [];
    for (let before = 0; received < 1_000; before = received) {
      await nextTurn();
      inOneTurn.push(received - before);
    }
    expect(Math.max(...inOneTurn)).toBeLessThanOrEqual(2);
    socket.terminate();
    server.close();
  });
});
