import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { RialtoError } from '../../kernel/errors.js';
import { readText } from './body.js';
import type { DoorRequest } from './http.types.js';

/** Sends a POST with these bytes as its body, and returns the status line and the text that the server read. */
async function post(bytes: string, headers: string, seen?: (request: IncomingMessage) => void) {
  let read = '';
  const server = createServer((request, response) => {
    seen?.(request);
    readText(request as DoorRequest, 1_000_000).then(
      (body) => {
        read = body;
        response.end();
      },
      (error: unknown) => response.writeHead(400).end(RialtoError.from(error).message),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n\r\n${bytes}`);
  let answer = '';
  socket.on('data', (piece) => (answer += piece.toString())).on('error', () => undefined);
  await once(socket, 'close');
  await new Promise((resolve) => server.close(resolve));
  return { answer, read };
}

const chunked = 'Transfer-Encoding: chunked';

describe('readText', () => {
  it('reads a body that arrives in chunks', async () => {
    const { answer, read } = await post(`${'4\r\nabc\n\r\n'.repeat(900)}0\r\n\r\n`, chunked);
    expect([answer.slice(9, 12), read]).toEqual(['200', 'abc\n'.repeat(900)]);
  });

  it('refuses a body of very many tiny chunks, and stops to read it', async () => {
    let received = 0;
    const { answer } = await post(`${'1\r\na\r\n'.repeat(200_000)}0\r\n\r\n`, chunked, (request) => {
      const push = request.push.bind(request);
      request.push = (chunk: unknown) => {
        received += 1;
        return push(chunk);
      };
    });
    expect([answer.slice(9, 12), answer]).toEqual(['400', expect.stringContaining('chunks')]);
    expect(received).toBeLessThan(50_000);
  });
});
