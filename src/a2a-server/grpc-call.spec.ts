import { once } from 'node:events';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { Server, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { GrpcReply, requestOf, resetAfterStatus } from './grpc-call.js';

const asIs = (bytes: Buffer): Buffer => bytes;
const message = Buffer.alloc(200_000, 1);

/** Tests against a server with one stream method; the HTTP/2 client reads only on request. */
describe('GrpcReply and requestOf', () => {
  const server = new Server();
  let session: ClientHttp2Session;
  const calls: ServerWritableStream<Buffer, Buffer>[] = [];
  let arrived: () => void;

  beforeAll(async () => {
    const definition = {
      ...{ path: '/a.B/Stream', requestStream: false, responseStream: true },
      ...{ requestSerialize: asIs, requestDeserialize: asIs, responseSerialize: asIs, responseDeserialize: asIs },
    };
    const stream = (call: ServerWritableStream<Buffer, Buffer>): void => {
      calls.push(call);
      arrived();
    };
    server.addService({ stream: definition }, { stream });
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
    session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 1_000 } });
    await once(session, 'connect');
  });
  afterAll(() => {
    session.destroy();
    server.forceShutdown();
  });

  const open = async (headers: object = {}): Promise<{ raw: ClientHttp2Stream; reply: GrpcReply; ended: number[] }> => {
    const callArrived = new Promise<void>((resolve) => (arrived = resolve));
    const raw = session.request({
      ...{ ':method': 'POST', ':path': '/a.B/Stream', te: 'trailers', 'content-type': 'application/grpc' },
      ...headers,
    });
    raw.on('error', () => undefined).pause();
    raw.end(Buffer.alloc(5));
    await callArrived;
    const ended: number[] = [];
    const call = calls.at(-1)!;
    const reply = new GrpcReply(call, ({ code }) => {
      ended.push(code);
      call.emit('error', { code, details: '' });
    });
    return { raw, reply, ended };
  };

  it('waits until the transport has taken a message before the next one', async () => {
    const { raw, reply } = await open();
    let taken = false;
    const sending = reply.writeMessage(message).then((alive) => (taken = alive));
    await once(raw, 'response');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([taken, reply.writableLength]).toEqual([false, message.length]);
    raw.resume();
    expect(await sending).toBe(true);
    expect(reply.writableLength).toBe(0);
    raw.close();
    await once(reply, 'close');
    expect([reply.statusCode, await reply.writeMessage(message)]).toEqual([1, false]);
  });

  it('ends the call of a client that reads nothing, and frees its buffer', async () => {
    const { raw, reply, ended } = await open();
    const closed = once(raw, 'close');
    expect(await reply.writeMessage(message, 150)).toBe(false);
    expect([ended, reply.writableEnded]).toEqual([[14], true]);
    await closed;
    expect(raw.rstCode).toBe(8);
    reply.end();
    expect(ended).toEqual([14]);
  });

  it('reads headers from the metadata and the address from the socket', async () => {
    const { raw, reply } = await open({ 'a2a-extensions': 'urn:a,urn:b', 'x-request-id': 'r-1', 'own-bin': 'AAE=' });
    const request = requestOf(calls.at(-1)!, '/a.B/Stream');
    expect(request.socket.remoteAddress).toBe('127.0.0.1');
    expect(request.requestId).toBe('r-1');
    expect(request.headers).toMatchObject({ 'a2a-extensions': 'urn:a,urn:b', host: expect.stringMatching(/^127/) });
    expect(request.headers).not.toHaveProperty('own-bin');
    reply.succeed(() => calls.at(-1)!.end());
    raw.close();
  });
});

it('resetAfterStatus waits until the connection has sent its frames', async () => {
  const state = { outboundQueueSize: 1 };
  const reset: number[] = [];
  let closed = (): void => undefined;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  const stream = { closed: false, session: { state }, close: (code: number) => (reset.push(code), closed()) };
  resetAfterStatus({ nextCall: { stream } });
  await new Promise((resolve) => setImmediate(resolve));
  expect(reset).toEqual([]);
  state.outboundQueueSize = 0;
  await isClosed;
  expect(reset).toEqual([0]);
});
