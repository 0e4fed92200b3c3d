import { once } from 'node:events';
import { connect } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { limitConnections } from './grpc-listeners.js';

it('a gRPC server closes connections above its limit', async () => {
  const server = new Server();
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  limitConnections(server, 1);
  const first = connect(port, '127.0.0.1');
  await once(first, 'data'); // the SETTINGS of the server
  const second = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(second, 'close');
  expect(first.closed).toBe(false);
  first.destroy();
  server.forceShutdown();
});
