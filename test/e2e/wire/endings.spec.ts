import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { LegacyA2AService } from '@a2a-js/sdk/compat/v0_3/server/grpc';
import { GetTaskRequest, SendMessageRequest, SubscribeToTaskRequest } from '@a2a-js/sdk';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { status } from '@grpc/grpc-js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { message } from '../../support/clients/a2e.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { StrictWebSocket, type WebSocketFrame } from '../../support/clients/strict-websocket.js';

/** One gRPC call as received over HTTP/2. */
interface GrpcEnd {
  readonly headers: IncomingHttpHeaders;
  readonly messages: Buffer[];
  /** Absent when the headers ended the call. */
  readonly trailers?: IncomingHttpHeaders;
  readonly resetCode: number;
}

/** Checks that each stream has one clean end after its last event, for every cause of the end. */
describe('the ends of streams of gRPC and WebSocket', () => {
  let gateway: TestGateway;
  let session: ClientHttp2Session;
  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0' });
    session = connect(`http://127.0.0.1:${gateway.gateway.grpcPort}`);
    await publish(gateway, { name: 'chunks', executor: { kind: 'echo', chunks: 20 } });
    await publish(gateway, { name: 'soon', executor: { kind: 'echo', delayMs: 3_000 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
  });
  afterAll(async () => {
    session.close();
    await gateway.close();
  });

  const begin = (path: string, request: Buffer, { to = session, agent = '' } = {}) => {
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(request.length, 1);
    const stream = to.request({
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      authorization: `Bearer ${gateway.token}`,
      'rialto-agent': agent,
    });
    stream.end(Buffer.concat([frame, request]));
    return stream;
  };
  /** Reads a call to its end. Throws when there are incomplete messages or data after the end. */
  const endOf = async (stream: ReturnType<typeof begin>): Promise<GrpcEnd> => {
    const pieces: Buffer[] = [];
    const trailers: IncomingHttpHeaders[] = [];
    stream.on('data', (piece: Buffer) => {
      if (trailers.length > 0) throw new Error('data after the trailers');
      pieces.push(piece);
    });
    stream.on('trailers', (block: IncomingHttpHeaders) => trailers.push(block));
    const [[headers]] = (await Promise.all([once(stream, 'response'), once(stream, 'close')])) as [
      [IncomingHttpHeaders],
      unknown,
    ];
    expect([trailers.length <= 1, stream.readableEnded]).toEqual([true, true]);
    return { headers, messages: messagesIn(Buffer.concat(pieces)), trailers: trailers[0], resetCode: stream.rstCode };
  };
  const sending = (agent: string) =>
    A2AService.sendStreamingMessage.requestSerialize(
      SendMessageRequest.fromJSON({ tenant: agent, message: userMessage('hello world') }),
    );
  const subscribing = (tenant: string, id: string) =>
    A2AService.subscribeToTask.requestSerialize(SubscribeToTaskRequest.fromJSON({ tenant, id }));
  const working = async (agent: string): Promise<string> => {
    const params = { message: userMessage('x'), configuration: { returnImmediately: true } };
    return (await rpc(gateway, 'SendMessage', params, { agent })).task.id;
  };
  const good = {
    headers: { ':status': 200, 'content-type': expect.stringMatching(/^application\/grpc/) },
    trailers: { 'grpc-status': '0' },
    resetCode: 0,
  };
  const lastOf = ({ messages }: GrpcEnd) =>
    A2AService.sendStreamingMessage.responseDeserialize(messages.at(-1)!).payload;

  it('SendStreamingMessage: forty concurrent streams on one connection', async () => {
    const { path } = A2AService.sendStreamingMessage;
    const ends = await Promise.all(Array.from({ length: 40 }, () => endOf(begin(path, sending('chunks')))));
    for (const end of ends) {
      expect(end).toMatchObject(good);
      expect(end.messages.length).toBeGreaterThan(3);
      expect(lastOf(end)).toMatchObject({ $case: 'statusUpdate', value: { status: { state: 3 } } });
    }
  });

  it('SubscribeToTask: up to the end of the task', async () => {
    const end = await endOf(begin(A2AService.subscribeToTask.path, subscribing('soon', await working('soon'))));
    expect(end).toMatchObject(good);
    expect(lastOf(end)).toMatchObject({ $case: 'statusUpdate', value: { status: { state: 3 } } });
  });

  it('the streams of 0.3', async () => {
    const { sendStreamingMessage, taskSubscription } = LegacyA2AService;
    const part = { part: { $case: 'text', value: 'hello' } };
    const ids = { messageId: crypto.randomUUID(), contextId: '', taskId: '' };
    const content = { ...ids, role: 1, content: [part], metadata: undefined, extensions: [] };
    const request = { request: content, configuration: undefined, metadata: undefined };
    const bytes = sendStreamingMessage.requestSerialize(request as never);
    const name = `tasks/${await working('soon')}`;
    const ends = await Promise.all([
      ...Array.from({ length: 10 }, () => endOf(begin(sendStreamingMessage.path, bytes, { agent: 'chunks' }))),
      endOf(begin(taskSubscription.path, taskSubscription.requestSerialize({ name }), { agent: 'soon' })),
    ]);
    for (const end of ends) {
      expect(end).toMatchObject(good);
      const last = sendStreamingMessage.responseDeserialize(end.messages.at(-1)!);
      expect(last).toMatchObject({ payload: { $case: 'statusUpdate', value: { final: true } } });
    }
  });

  it('a refusal also ends cleanly, and the connection stays usable', async () => {
    const bytes = subscribing('soon', '01900000-0000-7000-8000-000000000000');
    const { headers, messages, trailers } = await endOf(begin(A2AService.subscribeToTask.path, bytes));
    expect([{ ...headers, ...trailers }['grpc-status'], messages]).toEqual(['5', []]);
    const id = await working('soon');
    const unary = A2AService.getTask.requestSerialize(GetTaskRequest.fromJSON({ tenant: 'soon', id }));
    expect(await endOf(begin(A2AService.getTask.path, unary))).toMatchObject(good);
  });

  const list = (): object => message('mcp/server/list/req');
  const replied = { text: expect.stringContaining('"servers":[]') };
  /** Reads until the close frame, and answers it. */
  const upToClose = async (one: StrictWebSocket): Promise<WebSocketFrame[]> => {
    const frames: WebSocketFrame[] = [];
    for (;;) {
      const frame = await one.next();
      frames.push(frame);
      if ('close' in frame) return frames;
    }
  };

  it('a WebSocket that its agent closes: the replies, one close frame, the end', async () => {
    for (let round = 0; round < 20; round++) {
      const one = await StrictWebSocket.open(`${gateway.url}/a2e`, gateway.token);
      for (let count = 0; count < 5; count++) one.send(list());
      for (let count = 0; count < 5; count++) expect(await one.next()).toEqual(replied);
      one.close(1000);
      expect(await one.next()).toEqual({ close: 1000, reason: '' });
      await one.ended();
    }
  });

  it('a WebSocket that its agent closes before the replies: only whole frames', async () => {
    for (let round = 0; round < 20; round++) {
      const one = await StrictWebSocket.open(`${gateway.url}/a2e`, gateway.token);
      for (let count = 0; count < 5; count++) one.send(list());
      one.close(1000);
      const frames = await upToClose(one);
      expect(frames.at(-1)).toEqual({ close: 1000, reason: '' });
      for (const frame of frames.slice(0, -1)) expect(frame).toEqual(replied);
      await one.ended();
    }
  });

  it('a WebSocket with an expired credential: a close frame with the reason, the end', async () => {
    const { body } = await gateway.call('POST', '/api/keys', { name: 'a2e', role: 'member' });
    const one = await StrictWebSocket.open(`${gateway.url}/a2e`, body.key);
    one.send(list());
    expect(await one.next()).toEqual(replied);
    await gateway.call('DELETE', `/api/keys/${body.id}`);
    expect(await one.next()).toEqual({ close: 1008, reason: 'the credential ended' });
    one.close(1008);
    await one.ended();
  });

  describe('of a stopping process', () => {
    let process: GatewayProcess;
    let url: string;
    beforeEach(async () => {
      process = gateway.beside({ GRPC_PORT: '0' });
      url = await process.ready;
    });

    it('gRPC: UNAVAILABLE after the last event, and no reset', async () => {
      const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
      const to = connect(`http://${/^ +gRPC +(\S+)$/m.exec(process.output())![1]}`);
      const closed = once(to, 'close');
      const stream = begin(A2AService.subscribeToTask.path, subscribing('asks', task.id), { to });
      const end = endOf(stream);
      await once(stream, 'data');
      process.child.kill('SIGTERM');
      const { trailers, messages, resetCode } = await end;
      expect([trailers?.['grpc-status'], resetCode]).toEqual([String(status.UNAVAILABLE), 0]);
      expect(messages.length).toBeGreaterThan(0);
      await closed;
      expect((await process.ended).code).toBe(0);
    });

    it('WebSocket: 1001 after the replies, the end', async () => {
      const one = await StrictWebSocket.open(`${url}/a2e`, gateway.token);
      for (let count = 0; count < 3; count++) one.send(list());
      expect(await one.next()).toEqual(replied);
      process.child.kill('SIGTERM');
      const frames = await upToClose(one);
      expect(frames.at(-1)).toMatchObject({ close: 1001 });
      for (const frame of frames.slice(0, -1)) expect(frame).toEqual(replied);
      one.close(1001);
      await one.ended();
      expect((await process.ended).code).toBe(0);
    });
  });
});

/** Parses messages with the prefix of five bytes (gRPC over HTTP/2). Throws for one that is compressed or cut. */
function messagesIn(bytes: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] !== 0 || at + 5 > bytes.length) throw new Error('a message has no prefix');
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    if (end > bytes.length) throw new Error('a message is cut');
    messages.push(bytes.subarray(at + 5, end));
    at = end;
  }
  return messages;
}
