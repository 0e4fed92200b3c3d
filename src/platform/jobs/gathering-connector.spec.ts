import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { gathered, GatheringConnector } from './gathering-connector.js';

describe('a stream whose writes are gathered', () => {
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

  it('sends what is written in one turn at once, in its order, and the next turn by itself', async () => {
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

  it('gathers what is written by whoever waited for the same', async () => {
    const one = stream();
    const event = turn();
    await Promise.all(['a', 'b', 'c'].map((word) => event.then(() => one.write(word))));
    await turn();
    expect(sent).toEqual([['a', 'b', 'c']]);
  });

  it('sends what was written before its end, and tells each writer', async () => {
    const one = stream();
    const told: string[] = [];
    one.write('a', () => told.push('a'));
    one.write('b', () => told.push('b'));
    await new Promise<void>((done) => one.end('c', done));
    expect([sent.flat(), told]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b'],
    ]);
  });

  it('is the way of a client to Redis: one write for the commands of a turn', async () => {
    const heard: string[] = [];
    const server = createServer((socket: Socket) =>
      socket.on('data', (bytes) => {
        const said = bytes.toString();
        if (/hello/i.test(said)) return socket.write('%0\r\n');
        heard.push(said);
        return socket.write('+PONG\r\n'.repeat(said.match(/ping/gi)!.length));
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
        expect([answers.length, heard.length]).toEqual([50, round]);
      }
    } finally {
      client.disconnect();
      server.close();
    }
  });
});
