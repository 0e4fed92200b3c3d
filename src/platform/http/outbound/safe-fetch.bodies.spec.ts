import { once } from 'node:events';
import type { Socket } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import {
  client,
  closeAll,
  closed,
  failure,
  get,
  http,
  raw,
  read,
  readers,
} from '../../../../test/support/clients/outbound.js';

afterEach(closeAll);

describe.each(readers)('SafeFetch.%s: hostile bodies', (name, readBody) => {
  const big = Buffer.alloc(8_000_000, 'a');
  const bombs: [string, string, Buffer][] = [
    ['gzip', 'gzip', gzipSync(big)],
    ['brotli', 'br', brotliCompressSync(big)],
    ['deflate', 'deflate', deflateSync(big)],
    ['nested gzip', 'gzip, gzip', gzipSync(gzipSync(big))],
    ['multi-member gzip', 'gzip', Buffer.concat(Array.from({ length: 20 }, () => gzipSync(big.subarray(0, 400_000))))],
    ['three layers', 'gzip, gzip, gzip', gzipSync(gzipSync(gzipSync('small')))],
    ['unknown coding', 'compress', Buffer.from('x')],
    ['no gzip at all', 'gzip', Buffer.from('this is text')],
    ['truncated gzip', 'gzip', gzipSync('hello hello hello').subarray(0, 15)],
  ];

  it.each(bombs)('abuse 24: %s is remote_invalid_response', async (_title, coding, body) => {
    const { url } = await http((_req, res) => res.writeHead(200, { 'content-encoding': coding }).end(body));
    expect((await failure(readBody(client(), get(url)))).code).toBe('remote_invalid_response');
  });

  it('inflates a body that a server compressed without being asked', async () => {
    const { url } = await http((req, res) => {
      const coding = req.url!.slice(1);
      const pack =
        { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync }[coding] ??
        ((text: string) => brotliCompressSync(gzipSync(text)));
      res.writeHead(200, { 'content-encoding': coding }).end(pack('hello'));
    });
    for (const coding of ['gzip', 'br', 'deflate', 'gzip,br']) {
      expect([coding, (await readBody(client(), get(`${url}/${coding}`))).toString()]).toEqual([coding, 'hello']);
    }
  });

  it('does not inflate an empty body, also when it declares a coding', async () => {
    const { url } = await http((req, res) =>
      res.writeHead(req.method === 'HEAD' ? 200 : 204, { 'content-encoding': 'gzip' }).end(),
    );
    expect(await readBody(client(), get(url))).toHaveLength(0);
    expect(await readBody(client(), get(url, { method: 'HEAD' }))).toHaveLength(0);
  });

  it('abuse 25: an endless body ends at the cap, with its socket', async () => {
    const { url, connections } = await http((_req, res) => {
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(65_536)));
      };
      res.on('drain', more).on('error', () => undefined);
      more();
    });
    expect((await failure(readBody(client(), get(url)))).code).toBe('remote_invalid_response');
    await closed(connections[0]!);
  });

  it('abuse 25: a declared length over the cap is refused before the body', async () => {
    const { url, connections } = await http((_req, res) => {
      res.writeHead(200, { 'content-length': 10_000_000_000 }).flushHeaders();
    });
    expect((await failure(readBody(client(), get(url)))).code).toBe('remote_invalid_response');
    await closed(connections[0]!);
    const head = await http((_req, res) => res.writeHead(200, { 'content-length': 10_000_000_000 }).end());
    expect(await readBody(client(), get(head.url, { method: 'HEAD' }))).toHaveLength(0);
  });

  it('abuse 25: a dripping body ends at the total deadline, with its socket', async () => {
    const { url, connections } = await http((_req, res) => {
      const drip = setInterval(() => res.write('.'), 20);
      res.on('close', () => clearInterval(drip));
    });
    expect((await failure(readBody(client(), get(url, { deadlineMs: 300 })))).code).toBe('remote_timeout');
    await closed(connections[0]!);
  });

  it('abuse 25: a gzip body that stops half-way ends at the total deadline', async () => {
    const { url, connections } = await http((_req, res) => {
      res.writeHead(200, { 'content-encoding': 'gzip' }).write(gzipSync('hello').subarray(0, 12));
    });
    expect((await failure(readBody(client(), get(url, { deadlineMs: 300 })))).code).toBe('remote_timeout');
    await closed(connections[0]!);
  });

  it.each([
    ['100 KB of headers', `x-a: ${'a'.repeat(100_000)}\r\n`],
    ['10,000 headers', 'a: b\r\n'.repeat(10_000)],
    ['1,000 small headers', 'a:\r\n'.repeat(1_000)],
  ])('abuse 25: %s are remote_invalid_response', async (_title, lines) => {
    const { url, connections } = await raw((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${lines}content-length: 0\r\n\r\n`),
    );
    expect((await failure(readBody(client(), get(url)))).code).toBe('remote_invalid_response');
    await closed(connections[0]!);
  });

  it('abuse 25: a flood of informational answers and of chunk extensions ends', async () => {
    const hints = await raw((socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)));
    expect((await failure(readBody(client(), get(hints.url)))).code).toBe('remote_invalid_response');
    const chunks = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;');
      const flood = setInterval(() => socket.write('x'.repeat(10_000)), 5);
      socket.on('close', () => clearInterval(flood));
    });
    expect((await failure(readBody(client(), get(chunks.url, { deadlineMs: 300 })))).code).toBe('remote_timeout');
    await closed(chunks.connections[0]!);
  });

  it.each([
    ['half-close before the answer', (socket: Socket) => void socket.end()],
    ['half-close in the head', (socket: Socket) => void socket.end('HTTP/1.1 200')],
    [
      'half-close in a body of known length',
      (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'),
    ],
    [
      'half-close in a chunked body',
      (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n'),
    ],
    ['reset before the answer', (socket: Socket) => void socket.resetAndDestroy()],
    [
      'reset mid-body',
      (socket: Socket) =>
        void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc', () => socket.resetAndDestroy()),
    ],
    ['no HTTP at all', (socket: Socket) => void socket.write('SSH-2.0-OpenSSH\r\n\r\n')],
    [
      'two lengths',
      (socket: Socket) =>
        void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    [
      'an upgrade that was not requested',
      (socket: Socket) => void socket.write('HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    ],
  ])('RE-28: %s is remote_transport', async (_title, answer) => {
    const { url, connections } = await raw(answer);
    const error = await failure(readBody(client(), get(url)));
    expect([error.code, error.message]).toEqual(['remote_transport', 'The remote side could not be reached']);
    await closed(connections[0]!);
  });

  it(`${name}: the caller's signal ends it before, during connect and during the body`, async () => {
    const { url, server, connections } = await http((_req, res) => void res.write('a'));
    expect((await failure(readBody(client(), get(url, { signal: AbortSignal.abort() })))).code).toBe('canceled');
    expect(connections.length).toBe(0);
    const connecting = new AbortController();
    const silent = client({
      resolve: () => {
        connecting.abort();
        return new Promise(() => undefined);
      },
    });
    expect((await failure(readBody(silent, get('http://silent.test/', { signal: connecting.signal })))).code).toBe(
      'canceled',
    );
    const running = new AbortController();
    const body = failure(readBody(client(), get(url, { signal: [new AbortController().signal, running.signal] })));
    await once(server, 'request');
    running.abort();
    expect((await body).code).toBe('canceled');
    await closed(connections[0]!);
  });
});

describe('SafeFetch: answers of tiny chunks', () => {
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const chunks = (count: number) => `${head}${'1\r\na\r\n'.repeat(count)}0\r\n\r\n`;

  it('refuses very many of them in an answer that is read whole', async () => {
    const { url, connections } = await raw((socket) => socket.write(chunks(20_000)));
    const error = await failure(client().request(get(url)));
    expect([error.code, error.message]).toEqual(['remote_invalid_response', 'the answer has too many tiny chunks']);
    await closed(connections[0]!);
  });

  it('accepts them in a stream, and up to 10,000 in any answer', async () => {
    const [long, short] = [
      await raw((socket) => socket.end(chunks(20_000))),
      await raw((socket) => socket.end(chunks(10_000))),
    ];
    expect((await read((await client().stream(get(long.url))).body)).length).toBe(20_000);
    expect((await client().request(get(short.url))).body.length).toBe(10_000);
  });

  it('reads no more than the first of them where the beginning of an answer is enough', async () => {
    const { url } = await raw((socket) => socket.write(chunks(20_000)));
    const { body, isCut } = await client().beginning(get(url));
    expect([body.length, isCut]).toEqual([10_001, true]);
  });
});
