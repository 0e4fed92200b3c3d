import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { StrictConnection } from '../../../../test/support/clients/strict-http.js';
import { EventStream } from './event-stream.js';

type Play = (stream: EventStream, response: ServerResponse) => unknown;

describe('the body of an event stream', () => {
  let server: Server;
  let play: Play = () => undefined;
  let connection: StrictConnection;

  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url !== '/stream') return void response.end('next');
      const stream = new EventStream(response);
      stream.writeHead();
      void play(stream, response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  beforeEach(async () => {
    connection = await StrictConnection.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(() => connection.destroy());
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const answer = async (next: Play) => {
    play = next;
    return connection.exchange({ path: '/stream' });
  };

  it('has the frames of its last turn once, before the last chunk; the next answer follows (T1)', async () => {
    const { body, chunks } = await answer(async (stream) => {
      stream.write('data: 1\n\n');
      stream.write('data: 2\n\n');
      await turn();
      await stream.send('data: 3\n\n');
      stream.end('data: 4\n\n');
    });
    expect(body).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n');
    expect(chunks).toEqual([18, 18]);
    expect((await connection.exchange({ path: '/other' })).body).toBe('next');
    await connection.finish();
  });

  it('is sent in one piece with the headers when it ends in its first turn', async () => {
    const { body, chunks, headers } = await answer((stream) => {
      stream.write('data: ä\n\n');
      stream.end('data: 2\n\n');
      expect(stream.headersSent).toBe(true);
    });
    expect([body, chunks, headers['content-length']]).toEqual(['data: ä\n\ndata: 2\n\n', undefined, '19']);
    expect((await connection.exchange({ path: '/other' })).body).toBe('next');
  });

  it('is empty when nothing was written, and accepts nothing after its end', async () => {
    const { body, headers } = await answer((stream) => {
      stream.end();
      stream.write('data: late\n\n');
      stream.end('data: later\n\n');
      return stream.send('data: last\n\n').then((isAlive) => expect(isAlive).toBe(false));
    });
    expect([body, headers['content-type']]).toEqual(['', 'text/event-stream']);
    expect((await connection.exchange({ path: '/other' })).body).toBe('next');
  });

  it('is complete for an HTTP/1.0 client, which does not support chunks', async () => {
    play = (stream) => {
      stream.write('data: 1\n\n');
      stream.end('data: 2\n\n');
    };
    connection.send({ path: '/stream', version: '1.0' });
    const { body, chunks } = await connection.response();
    expect([body, chunks]).toEqual(['data: 1\n\ndata: 2\n\n', undefined]);
  });

  it('waits while its reader is behind, and is complete when the reader continues', async () => {
    const frame = `data: ${'x'.repeat(65_536)}\n\n`;
    let sent = 0;
    let isDone = false;
    play = async (stream, response) => {
      while (sent < 400 && (await stream.send(frame))) sent++;
      stream.end();
      await once(response, 'finish');
      isDone = true;
    };
    connection.send({ path: '/stream' });
    connection.pause();
    for (let last = -1; last !== sent; await new Promise((resolve) => setTimeout(resolve, 50))) last = sent;
    expect(sent).toBeLessThan(400);
    expect(isDone).toBe(false);
    connection.resume();
    const { body } = await connection.response();
    expect(body.length).toBe(400 * frame.length);
    expect(body.endsWith('x\n\n')).toBe(true);
  });

  it('reports to its writer that the reader has disconnected', async () => {
    const gone = new Promise<boolean>((resolve) => {
      play = async (stream) => {
        stream.write('data: 1\n\n');
        await once(stream, 'close');
        resolve(await stream.send('data: 2\n\n'));
      };
    });
    connection.send({ path: '/stream' });
    await connection.head();
    connection.destroy();
    expect(await gone).toBe(false);
  });

  it('disconnects a reader that is a mebibyte behind when the writer does not wait', async () => {
    const closed = new Promise<void>((resolve) => {
      play = async (stream) => {
        const timer = setInterval(() => stream.write(`data: ${'x'.repeat(262_144)}\n\n`), 1);
        await once(stream, 'close');
        clearInterval(timer);
        resolve();
      };
    });
    connection.send({ path: '/stream' });
    await connection.head();
    connection.pause();
    await closed;
  });
});
