import { EventEmitter, once } from 'node:events';
import { Duplex, Readable } from 'node:stream';
import { createLogger } from '../../telemetry/logger.js';
import type { HttpWatch } from '../../telemetry/http-watch.js';
import type { Settings } from '../../config/settings.js';
import type { ResponseOrder } from './response-order.js';
import { SocketDoor } from './socket-door.js';

const limit = 100_000;

/** Sends a request with an `Upgrade` header and its body as Node 26 does; returns its bytes, when HTTP gets them. */
async function served(chunks: readonly Buffer[]): Promise<string | undefined> {
  const door = new SocketDoor({} as HttpWatch, createLogger('silent'), { RIALTO_MAX_BODY_BYTES: limit } as Settings);
  const server = new EventEmitter();
  door.guard(server as never, { answered: () => Promise.resolve(true) } as unknown as ResponseOrder, () => true);
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const socket = Object.assign(stream, { setTimeout: () => socket });
  const rawHeaders = ['Host', 'a', 'Connection', 'upgrade', 'Upgrade', 'h2c'];
  const line = { method: 'POST', url: '/', httpVersion: '1.1', rawHeaders, headers: { host: 'a', upgrade: 'h2c' } };
  const connection = once(server, 'connection');
  server.emit('upgrade', Object.assign(Readable.from(chunks), line, { socket }), stream, Buffer.from('|head'));
  await Promise.race([connection, once(stream, 'close')]);
  return stream.destroyed ? undefined : String(stream.read());
}
const chunksOf = (count: number, size: number): Buffer[] => Array<Buffer>(count).fill(Buffer.alloc(size, 'x'));

describe('SocketDoor: a request with an Upgrade header and a body', () => {
  it('is served as ordinary HTTP, up to the limit of bodies', async () => {
    for (const [count, size] of [
      [2, limit / 2],
      [10_000, 1],
    ] as const)
      expect(await served(chunksOf(count, size))).toMatch(/^POST \/ HTTP\/1.1\r\nHost: a\r\n\r\nx+\|head$/);
  });

  it.each([
    ['above the limit', 3, limit / 2],
    ['in very many tiny chunks', 10_001, 1],
  ])('ends its connection when the body is %s', async (_, count, size) => {
    expect(await served(chunksOf(count, size))).toBeUndefined();
  });
});
