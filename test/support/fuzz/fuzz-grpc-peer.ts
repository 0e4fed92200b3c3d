import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { hostileTexts, scramble } from './fuzz-json.js';
import type { Random } from './random.js';

/** One answer to a call. An absent member means the correct value. */
export interface GrpcAnswer {
  readonly head?: Record<string, string | number>;
  readonly body?: Buffer;
  readonly trailers?: Record<string, string>;
  /** Ends the stream before its regular end. */
  readonly cut?: (stream: ServerHttp2Stream) => void;
}

const statuses = ['0', '1', '2', '3', '5', '7', '8', '12', '13', '14', '16', '17', '-1', 'x', ''];
const types = ['application/grpc', 'application/grpc+json', 'application/json', 'text/html'];

/** A gRPC server on plain HTTP/2. It answers with the expected messages, corrupted at random. */
export class FuzzGrpcPeer {
  private readonly sessions = new Set<ServerHttp2Session>();
  /** Percentage of correct answers. */
  goodShare = 10;
  /** Answer to every call, instead of a random one. */
  fixed?: GrpcAnswer;

  private constructor(
    private readonly server: Http2Server,
    private readonly random: Random,
    private readonly good: (path: string) => readonly Buffer[],
  ) {}

  /**
   * Starts a peer.
   * @param good returns the correct messages for a call of a path.
   */
  static async start(random: Random, good: (path: string) => readonly Buffer[]): Promise<FuzzGrpcPeer> {
    const server = createServer();
    const peer = new FuzzGrpcPeer(server, random, good);
    server.on('session', (session) => {
      peer.sessions.add(session);
      session.on('error', () => undefined).on('close', () => peer.sessions.delete(session));
    });
    server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined).resume();
      peer.answer(stream, peer.good(String(headers[':path'])));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return peer;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const session of this.sessions) session.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private answer(stream: ServerHttp2Stream, messages: readonly Buffer[]): void {
    const good = { body: Buffer.concat(messages.map((message) => frame(message))) };
    const { head, body, trailers, cut }: GrpcAnswer =
      this.fixed ?? (this.random.chance(this.goodShare / 100) ? good : this.spoilt(messages, good.body));
    if (stream.destroyed) return;
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', ...head },
      { waitForTrailers: trailers === undefined || Object.keys(trailers).length > 0 },
    );
    stream.once('wantTrailers', () => stream.sendTrailers(trailers ?? { 'grpc-status': '0' }));
    if (body) stream.write(body);
    if (cut) setImmediate(() => cut(stream));
    else stream.end();
  }

  private spoilt(messages: readonly Buffer[], body: Buffer): GrpcAnswer {
    const { random } = this;
    const changed = messages.map((message) => scramble(message, random));
    const text = encodeURIComponent(random.pick(hostileTexts).toWellFormed());
    return random.pick<() => GrpcAnswer>([
      () => ({ body: Buffer.concat(changed.map((message) => frame(message))) }),
      () => ({ body: Buffer.concat(changed.map((message) => frame(message))) }),
      () => ({ body: Buffer.concat(random.shuffled([...messages, ...changed]).map((message) => frame(message))) }),
      () => ({ body: Buffer.concat(messages.map((message) => frame(message, random.pick([1, 2, 255])))) }),
      () => ({ body: Buffer.concat(messages.map((message) => frame(message, 0, random.pick([-3, -1, 1, 400, 1e9])))) }),
      () => ({ body: scramble(body, random) }),
      () => ({ body: body.subarray(0, random.whole(body.length)) }),
      () => ({ body: frame(Buffer.alloc(5_000_000, random.whole(256))) }),
      () => ({ body: Buffer.alloc(0) }),
      () => ({ body, trailers: { 'grpc-status': random.pick(statuses), 'grpc-message': text } }),
      () => ({ body: Buffer.alloc(0), trailers: { 'grpc-status': random.pick(statuses), 'grpc-message': text } }),
      () => ({ trailers: { 'grpc-status': '5', 'grpc-status-details-bin': changed[0]!.toString('base64') } }),
      () => ({ body, trailers: {} }),
      () => ({ body, head: { ':status': random.pick([204, 302, 401, 404, 429, 500, 503]) } }),
      () => ({ body, head: { 'content-type': random.pick(types) } }),
      () => ({ body, head: { 'grpc-encoding': random.pick(['gzip', 'identity', 'br', 'nothing']) } }),
      () => ({ body, cut: (stream) => stream.close(random.whole(14)) }),
      () => ({ body, cut: (stream) => stream.session?.goaway(random.whole(14)) }),
      () => ({ body, cut: (stream) => stream.session?.destroy() }),
      () => ({ body, cut: (stream) => stream.session?.destroy(new Error('x'), constants.NGHTTP2_PROTOCOL_ERROR) }),
      () => ({ body, cut: () => undefined }),
    ])();
  }
}

/**
 * Encodes a gRPC message.
 * @param lie number of bytes by which the declared length is wrong.
 */
export function frame(message: Buffer, flag = 0, lie = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(Math.max(0, message.length + lie), 1);
  return Buffer.concat([head, message]);
}
