import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { whenAnswered, whenGone } from './caller-gone.js';
import type { DoorResponse } from './http.types.js';

/** More than the buffers of a connection hold. */
const body = 'x'.repeat(20_000_000);

describe('the end of an answer', () => {
  let server: Server;
  let received: Promise<DoorResponse>;

  beforeEach(async () => {
    server = createServer();
    received = once(server, 'request').then(([, response]) => response as DoorResponse);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  });
  afterEach(() => void server.close());

  const request = async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined).pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    return socket;
  };

  it.each(['destroy', 'resetAndDestroy', 'end'] as const)(
    'is seen when its reader calls %s too early',
    async (leave) => {
      const socket = await request();
      const response = await received;
      const [answered, gone] = [whenAnswered(response), whenGone(response)()];
      const closed = once(response, 'close');
      response.write(body);
      response.end(body);
      socket[leave]();
      setImmediate(() => socket.destroy());
      await closed;
      expect([await answered, gone.aborted, whenGone(response)().aborted, await whenAnswered(response)]).toEqual([
        false,
        true,
        true,
        false,
      ]);
    },
  );

  it('is no disconnection when the reader got everything', async () => {
    const socket = await request();
    const response = await received;
    const [answered, gone] = [whenAnswered(response), whenGone(response)()];
    const closed = once(response, 'close');
    response.end(body);
    socket.resume();
    await closed;
    expect([await answered, gone.aborted, whenGone(response)().aborted]).toEqual([true, false, false]);
  });
});
