import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { FrontServer } from '../../../src/platform/http/server/front-server.js';
import { publish } from '../../support/clients/a2a.js';
import { message } from '../../support/clients/a2e.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { requestText, StrictConnection, type StrictRequest } from '../../support/clients/strict-http.js';

const h2c = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQCAAAAAAIAAAAA' };
const key = Buffer.alloc(16, 7).toString('base64');
const webSocket = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-key': key,
  'sec-websocket-version': '13',
};

describe('upgrade requests, byte by byte', () => {
  let gateway: TestGateway;
  let authorization: string;
  const sockets = new Set<Socket>();
  beforeAll(async () => {
    const made = jest.spyOn(FrontServer.prototype, 'initHttpServer');
    gateway = await startTestGateway();
    const server = (made.mock.contexts.at(-1) as FrontServer).getHttpServer();
    made.mockRestore(); // another spec in this process finds its own server this way
    server.on('connection', (socket: Socket) => {
      if (!sockets.has(socket)) sockets.add(socket.once('close', () => sockets.delete(socket)));
    });
    authorization = `Bearer ${gateway.token}`;
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 300 } });
  });
  afterAll(() => gateway.close());
  afterEach(() => expect(gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]));

  const closed = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once('close', resolve));
  const listeners = (socket: Socket) =>
    Object.fromEntries(socket.eventNames().map((name) => [name, socket.listenerCount(name)]));
  const open = (): Promise<StrictConnection> => StrictConnection.open(gateway.url);
  const version: StrictRequest = { path: '/version' };
  const slow = (): StrictRequest => ({
    path: '/a2a/agents/slow',
    headers: { authorization, 'a2a-version': '1.0' },
    body: {
      jsonrpc: '2.0',
      id: 'slow',
      method: 'SendMessage',
      params: { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }] } },
    },
  });
  const listing = (): StrictRequest => ({
    path: '/a2e',
    headers: { authorization, ...h2c },
    body: message('mcp/server/list/req'),
  });
  const accepted = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

  it('serves a POST with an HTTP/2 upgrade as HTTP/1.1, with its body, several on a connection', async () => {
    const one = await open();
    for (let index = 0; index < 3; index++) {
      expect(await one.exchange(listing())).toMatchObject({ status: 200, informational: [] });
      expect(await one.exchange({ ...version, headers: h2c })).toMatchObject({ status: 200 });
      expect(await one.exchange(version)).toMatchObject({ status: 200 });
    }
    await one.finish();
  });

  it('serves a body that arrives after the headers, also a chunked one', async () => {
    let one = await open();
    const body = JSON.stringify(message('mcp/server/list/req'));
    const type = { 'content-type': 'application/json', authorization, ...h2c };
    const served = { status: 200, body: expect.stringContaining('"servers":[]') };
    for (let index = 0; index < 3; index++) {
      one.send({ method: 'POST', path: '/a2e', headers: { ...type, 'content-length': String(body.length) } });
      one.write(body.slice(0, 20));
      await one.written();
      one.write(body.slice(20));
      const response = await one.response();
      expect(response).toMatchObject(served);
      if (response.headers.connection !== 'close') continue;
      await one.ended();
      one = await open();
    }
    one.send({ method: 'POST', path: '/a2e', headers: { ...type, 'transfer-encoding': 'chunked' } });
    one.write(`${body.length.toString(16)}\r\n${body}\r\n`);
    await one.written();
    one.write('0\r\n\r\n');
    expect(await one.response()).toMatchObject(served);
    await one.finish();
  });

  it('answers pipelined upgrade requests in their order, also slow ones', async () => {
    const one = await open();
    const requests = [
      { ...slow(), headers: { ...slow().headers, ...h2c } },
      listing(),
      { ...version, headers: h2c },
      slow(),
      { path: '/api/orgs', headers: { authorization, connection: 'upgrade', upgrade: 'TLS/1.2' } },
      { ...version, method: 'HEAD', headers: h2c },
      { path: '/a2e', headers: webSocket, body: 'no handshake', method: 'GET' },
      version,
    ];
    one.write(requests.map(requestText).join(''));
    const bodies = [
      /"id":"slow"/,
      /"servers":/,
      /"version"/,
      /"id":"slow"/,
      /"items"/,
      /^$/,
      /method_not/,
      /"version"/,
    ];
    for (const [index, request] of requests.entries()) {
      const { body, informational } = await one.response(request.method);
      expect([body, informational]).toEqual([expect.stringMatching(bodies[index]!), []]);
    }
    await one.finish();
  });

  it('answers 3,000 pipelined upgrade requests on one connection and keeps no state of them', async () => {
    const one = await open();
    const request = { ...version, headers: h2c };
    expect((await one.exchange(request)).status).toBe(200);
    const socket = [...sockets].at(-1)!;
    const before = listeners(socket);
    one.write(requestText(request).repeat(3_000));
    for (let index = 0; index < 3_000; index++) expect((await one.response()).status).toBe(200);
    expect(listeners(socket)).toEqual(before);
    await one.finish();
  });

  it('opens a WebSocket after requests that are not answered yet', async () => {
    const one = await open();
    one.write([slow(), version, { path: '/a2e', headers: { authorization, ...webSocket } }].map(requestText).join(''));
    expect(await one.response()).toMatchObject({ status: 200, body: expect.stringContaining('"id":"slow"') });
    expect(await one.response()).toMatchObject({ status: 200 });
    expect(await one.response()).toMatchObject({ status: 101, headers: { 'sec-websocket-accept': accepted } });
    one.destroy();
  });

  it.each([
    ['without a credential', {}, 401, 'unauthenticated'],
    ['from a foreign page', { origin: 'https://evil.example' }, 403, 'denied'],
  ] as const)(
    'refuses a WebSocket %s with a complete response, after those before it',
    async (_, more, status, code) => {
      const one = await open();
      const refused: StrictRequest = { path: '/a2e', headers: { 'x-request-id': 'r-1', ...webSocket, ...more } };
      one.write([slow(), refused, version].map(requestText).join(''));
      expect(await one.response()).toMatchObject({ status: 200, body: expect.stringContaining('"id":"slow"') });
      const refusal = await one.response();
      expect(refusal).toMatchObject({ status, headers: { connection: 'close', 'x-request-id': 'r-1' } });
      expect(refusal.headers['www-authenticate']).toBe(status === 401 ? 'Bearer realm="rialto"' : undefined);
      expect(JSON.parse(refusal.body)).toMatchObject({ code, status, requestId: 'r-1' });
      await one.ended();
    },
  );

  it('ends the connection of a refused client that continues to send and never closes', async () => {
    const one = await StrictConnection.open(gateway.url, { allowHalfOpen: true });
    one.send({ path: '/a2e', headers: webSocket });
    expect(await one.response()).toMatchObject({ status: 401 });
    const socket = [...sockets].at(-1)!;
    one.write('x'.repeat(1_000_000));
    await closed(socket);
    one.destroy();
  });

  it('forgets a client that leaves while its upgrade waits', async () => {
    const one = await open();
    one.write([slow(), { path: '/a2e', headers: webSocket }, version].map(requestText).join(''));
    await one.written();
    const socket = [...sockets].at(-1)!;
    const left = closed(socket);
    one.destroy();
    await left;
    const next = await open();
    expect(await next.exchange({ ...version, headers: h2c })).toMatchObject({ status: 200 });
    await next.finish();
  });
});
