import { once } from 'node:events';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { GetTaskRequest, SendMessageRequest } from '@a2a-js/sdk';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { status } from '@grpc/grpc-js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('the gRPC services', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0' });
    await publish(gateway);
  });
  afterAll(() => gateway.close());

  const dial = (initialWindowSize?: number): ClientHttp2Session =>
    connect(`http://127.0.0.1:${gateway.gateway.grpcPort}`, {
      ...(initialWindowSize !== undefined && { settings: { initialWindowSize } }),
    }).on('error', () => undefined);
  const open = (session: ClientHttp2Session, path: string): ClientHttp2Stream =>
    session
      .request({
        ...{ ':method': 'POST', ':path': path, te: 'trailers', 'content-type': 'application/grpc' },
        authorization: `Bearer ${gateway.token}`,
      })
      .on('error', () => undefined);
  const framed = (message: Buffer): Buffer => {
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    message.copy(frame, 5);
    return frame;
  };

  it('abuse 35: a caller that does not read large answers gets no further ones, until it has left', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x'.repeat(900_000)) });
    const request = framed(
      A2AService.getTask.requestSerialize(GetTaskRequest.fromJSON({ id: task.id, tenant: 'echo', historyLength: 9 })),
    );
    const get = async (session: ClientHttp2Session): Promise<number | undefined> => {
      const stream = open(session, A2AService.getTask.path);
      stream.pause();
      stream.end(request);
      const [headers] = (await once(stream, 'response')) as [Record<string, string>];
      return headers['grpc-status'] === undefined ? undefined : Number(headers['grpc-status']);
    };
    const idle = dial(0);
    const ends = await Promise.all(Array.from({ length: 12 }, () => get(idle)));
    expect(ends).toEqual(expect.arrayContaining([undefined, status.RESOURCE_EXHAUSTED]));
    idle.destroy();
    const reader = dial();
    expect(await get(reader)).toBeUndefined();
    reader.destroy();
  });

  it('abuse 67: a request in chunks of one byte is refused', async () => {
    const message = { tenant: 'echo', message: userMessage('x'.repeat(20_000)) };
    const request = framed(A2AService.sendMessage.requestSerialize(SendMessageRequest.fromJSON(message)));
    const session = dial();
    const stream = open(session, A2AService.sendMessage.path).resume();
    const closed = once(stream, 'close');
    let answer: string | undefined;
    stream.once('response', (headers) => (answer = headers['grpc-status'] as unknown as string));
    const write = (byte: Buffer) => new Promise<void>((resolve) => void stream.write(byte, () => resolve()));
    for (let at = 0; at < request.length && answer === undefined; at++)
      await Promise.race([write(request.subarray(at, at + 1)), closed]);
    await closed;
    expect([answer, stream.rstCode]).toEqual([String(status.INVALID_ARGUMENT), 0]);
    session.destroy();
  });
});
