import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { leastOf, LoopBlocks } from '../../support/gateway/loop-blocks.js';

/** As for expensive JSON: twice the goal. */
const mostBlock = 100;
const onThisNode = LoopBlocks.isPossible ? it : it.skip;

describe('X2.4 many small pieces in one write do not block other callers', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(() => gateway.close());

  onThisNode('3,000 requests, all of which are answered in their order', async () => {
    const request = 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n';
    const block = await leastOf(mostBlock, async () => {
      const blocks = new LoopBlocks();
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
      let answers = 0;
      socket.on('data', (data: Buffer) => {
        answers += data.toString('latin1').split('HTTP/1.1 200').length - 1;
        if (answers >= 2_900) socket.destroy();
      });
      socket.write(request.repeat(3_000));
      await once(socket, 'close');
      return blocks.end();
    });
    expect(block).toBeLessThan(mostBlock);
  });

  onThisNode('20,000 frames over a WebSocket', async () => {
    const block = await leastOf(mostBlock, async () => {
      const headers = { authorization: `Bearer ${gateway.token}` };
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/a2e`, { headers });
      await once(socket, 'open');
      // The same client process pays for the answers that it reads, so it ends at the first ones.
      const frame = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x31]);
      const blocks = new LoopBlocks();
      (socket as unknown as { readonly _socket: NodeJS.WritableStream })._socket.write(
        Buffer.alloc(20_000 * frame.length, frame),
      );
      await once(socket, 'message');
      socket.terminate();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return blocks.end();
    });
    expect(block).toBeLessThan(mostBlock);
  });
});
