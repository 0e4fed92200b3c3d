import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { A2EClient } from '../client.js';
import type { A2EClientError } from './client-errors.js';

type Wire = Record<string, unknown>;

describe('SocketChannel', () => {
  let server: Server;
  let client: A2EClient;
  let refuse: { status: number; body?: string } | undefined;
  const received: Wire[] = [];
  const send: { current?: (text: string) => void } = {};

  beforeEach(async () => {
    refuse = undefined;
    received.length = 0;
    const sockets = new WebSocketServer({ noServer: true });
    server = createServer();
    server.on('upgrade', (request, socket, head) => {
      if (refuse) {
        const { status, body = '' } = refuse;
        return void socket.end(`HTTP/1.1 ${status} X\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
      }
      sockets.handleUpgrade(request, socket, head, (open) => {
        send.current = (text) => open.send(text);
        open.on('message', (data: Buffer) => received.push(JSON.parse(data.toString()) as Wire));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    client = new A2EClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { token: 't' });
  });
  afterEach(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const answer = ({ id, type }: Wire) =>
    send.current!(
      JSON.stringify({ type: `${String(type)}/resp`, id: `r-${String(id)}`, req_id: id, ok: true, text: 'x' }),
    );
  const waitForMessages = async (count: number) => {
    while (received.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
  };

  it.each([
    [401, 'a2e_refused', false],
    [403, 'a2e_refused', false],
    [404, 'a2e_refused', false],
    [408, 'a2e_connection', true],
    [429, 'a2e_connection', true],
    [503, 'a2e_connection', true],
  ])('(E12) rejects with the reason of a refused connection: HTTP %i', async (status, code, retryable) => {
    refuse = { status, body: JSON.stringify({ title: 'No', detail: 'the key was revoked' }) };
    const error = (await client.listServers().catch((thrown: unknown) => thrown)) as A2EClientError;
    expect(error).toMatchObject({ code, retryable, message: 'the key was revoked', data: { status } });
  });

  it('(E12) names the status when the body of the refusal cannot be parsed', async () => {
    refuse = { status: 401, body: '<html>' };
    await expect(client.listServers()).rejects.toMatchObject({
      code: 'a2e_refused',
      message: 'the gateway answered HTTP 401',
    });
  });

  it('(E11) holds back calls beyond 64 until replies come, and still answers questions', async () => {
    client.onRoots(() => ({ roots: [] }));
    const calls = Array.from({ length: 70 }, () => client.callTool('x', {}, { serverId: 's' }));
    await waitForMessages(64);
    send.current!(JSON.stringify({ type: 'mcp/roots/list/req', id: 'q', server_id: 's', params: {} }));
    await waitForMessages(65);
    expect(received.at(-1)).toMatchObject({ type: 'mcp/roots/list/resp', req_id: 'q', ok: true });
    const first = received.slice(0, 64);
    for (const message of first) answer(message);
    await waitForMessages(71);
    for (const message of received.slice(65)) answer(message);
    expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(calls.map(() => 'x'));
  });

  it('(E16) infers the parameters of an inline tool API', async () => {
    const called = client.callTool(
      'x',
      { n: 1 },
      { toolApi: { callTool: async (name, args) => [name, args.n] as const } },
    );
    await waitForMessages(1);
    const { id, type } = received[0]!;
    const servers = [{ server_id: 's', tools: [{ name: 's__x', tool_name: 'x' }] }];
    send.current!(JSON.stringify({ type: `${String(type)}/resp`, id: 'r', req_id: id, ok: true, servers }));
    expect(await called).toEqual([expect.stringContaining('x'), 1]);
  });

  it('(E11) gives up a call that waits longer than its timeout, and never sends it', async () => {
    const calls = Array.from({ length: 64 }, () => client.callTool('x', {}, { serverId: 's' }));
    await waitForMessages(64);
    const late = client.callTool('late', {}, { serverId: 's', timeoutMs: 20 });
    await expect(late).rejects.toMatchObject({ code: 'a2e_timeout' });
    for (const message of received) answer(message);
    await Promise.all(calls);
    expect(received.some(({ tool }) => tool === 'late')).toBe(false);
  });
});
