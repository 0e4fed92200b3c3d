import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import { breakConnection, breakWhenReady, onServerError } from './pg-connection.js';

const message = (type: string, body: string | Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, Buffer.from(body)]);
};
const welcome = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', 'I')]);
const refusal = Buffer.concat([message('E', 'SERROR\0VERROR\0C25006\0Mread-only\0\0'), message('Z', 'I')]);

describe('the protocol connection of node-postgres', () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(welcome);
      socket.on('data', () => socket.write(refusal));
    });
  });
  let client: pg.Client;

  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => void server.close());
  beforeEach(async () => {
    const { port } = server.address() as AddressInfo;
    client = new pg.Client({ host: '127.0.0.1', port, user: 'any', database: 'any', password: 'any' });
    client.on('error', () => undefined);
    await client.connect();
  });

  it('reports the code of an error, and closes the connection after its statement', async () => {
    const codes: (string | undefined)[] = [];
    onServerError(client, (code) => {
      codes.push(code);
      breakWhenReady(client);
    });
    const ended = new Promise((resolve) => client.once('end', () => resolve('ended')));
    await expect(client.query('select 1')).rejects.toThrow('read-only');
    expect(await ended).toBe('ended');
    expect(codes).toEqual(['25006']);
  });

  it('closes the connection at once', async () => {
    const ended = new Promise((resolve) => client.once('end', () => resolve('ended')));
    breakConnection(client);
    expect(await ended).toBe('ended');
  });
});
