import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { gathered, GatheringConnector } from './gathering-connector.js';

describe('a stream that gathers its writes', () => {
  const sent: string[][] = [];
  const stream = (): Writable => {
    sent.length = 0;
    return gathered(
      new Writable({
        decodeStrings: false,
        write: (chunk: string, _, done) => (sent.push([chunk]), done()),
        writev: (chunks, done) => (sent.push(chunks.map(({ chunk }) => String(chunk))), done()),
      }),
    );
  };

  it('sends the writes of one turn together and in order, and those of the next turn separately', async () => {
    const one = stream();
    one.write('a');
    one.write('b');
    expect(sent).toEqual([]);
    await turn();
    expect(sent).toEqual([['a', 'b']]);
    one.write('c');
    await turn();
    expect(sent.flat()).toEqual(['a', 'b', 'c']);
  });

  it('gathers the writes of all that waited for the same event', async () => {
    const one = stream();
    const event = turn();
    await Promise.all(['a', 'b', 'c'].map((word) => event.then(() => one.write(word))));
    await turn();
    expect(sent).toEqual([['a', 'b', 'c']]);
  });

  it('sends the writes before its end, and calls each callback', async () => {
    const one = stream();
    const called: string[] = [];
    one.write('a', () => called.push('a'));
    one.write('b', () => called.push('b'));
    await new Promise<void>((done) => one.end('c', done));
    expect([sent.flat(), called]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b'],
    ]);
  });

  it('serves as the connection of a Redis client: one write for the commands of a turn', async () => {
    const received: string[] = [];
    const server = createServer((socket: Socket) =>
      socket.on('data', (bytes) => {
        const text = bytes.toString();
        if (/hello/i.test(text)) return socket.write('%0\r\n');
        received.push(text);
        return socket.write('+PONG\r\n'.repeat(text.match(/ping/gi)!.length));
      }),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const settings = { lazyConnect: true, enableReadyCheck: false, disableClientInfo: true };
    const client = new Redis(port, '127.0.0.1', { ...settings, Connector: GatheringConnector as never });
    try {
      await client.connect();
      for (let round = 1; round <= 3; round++) {
        const answers = await Promise.all(Array.from({ length: 50 }, () => client.ping()));
        expect([answers.length, received.length]).toEqual([50, round]);
      }
    } finally {
      client.disconnect();
      server.close();
    }
  });
});
