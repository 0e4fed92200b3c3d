import type { Socket } from 'node:net';
import { FrontServer } from '../../../src/platform/http/server/front-server.js';
import { publish, userMessage } from '../../support/clients/a2a.js';
import { message } from '../../support/clients/a2e.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { requestText, StrictConnection, type StrictRequest } from '../../support/clients/strict-http.js';

const maxBody = 100_000;

describe('requests, byte by byte', () => {
  let gateway: TestGateway;
  let bearer: Record<string, string>;
  const sockets = new Set<Socket>();

  beforeAll(async () => {
    const made = jest.spyOn(FrontServer.prototype, 'initHttpServer');
    gateway = await startTestGateway({ RIALTO_MAX_BODY_BYTES: String(maxBody) });
    bearer = { authorization: `Bearer ${gateway.token}` };
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 300 } });
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
    const server = (made.mock.contexts.at(-1) as FrontServer).getHttpServer();
    made.mockRestore(); // another spec in this process finds its own server this way
    server.on('connection', (socket: Socket) => void sockets.add(socket.once('close', () => sockets.delete(socket))));
  });
  afterEach(async () => {
    await eventually(
      () => sockets.size,
      (count) => count === 0,
    );
    expect(gateway.log.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
  afterAll(() => gateway.close());

  const open = (): Promise<StrictConnection> => StrictConnection.open(gateway.url);
  const rpc = (agent: string, id: number): StrictRequest => ({
    path: `/a2a/agents/${agent}`,
    headers: { ...bearer, 'a2a-version': '1.0' },
    body: { jsonrpc: '2.0', id, method: 'SendMessage', params: { message: userMessage('hello') } },
  });
  const orgs: StrictRequest = {
    path: '/api/orgs',
    get headers() {
      return bearer;
    },
  };
  const version: StrictRequest = { path: '/version' };
  const a2e = (): StrictRequest => ({ path: '/a2e', headers: bearer, body: message('mcp/server/list/req') });
  /** Returns the head of a request with a body that follows later. */
  const begun = (request: StrictRequest, framing: Record<string, string>): string => {
    const { body: _, ...rest } = request;
    const type = { 'content-type': 'application/json' };
    return requestText({ method: 'POST', ...rest, headers: { ...type, ...request.headers, ...framing } });
  };
  const bodyOf = ({ body }: StrictRequest): string => JSON.stringify(body);
  const chunked = { 'transfer-encoding': 'chunked' };
  const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const doors: readonly [string, () => StrictRequest, number][] = [
    ['JSON-RPC', () => rpc('echo', 1), 200],
    ['A2E', a2e, 200],
    [
      'MCP',
      () => ({
        path: '/mcp',
        headers: { ...bearer, accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method: 'ping' },
      }),
      200,
    ],
    ['the management API', () => ({ path: '/api/orgs', headers: bearer, body: { slug: 7 } }), 400],
  ];

  describe('pipelined', () => {
    it('are answered in their order, for any doors and durations', async () => {
      const one = await open();
      const requests = [
        rpc('slow', 1),
        version,
        orgs,
        rpc('slow', 2),
        a2e(),
        { ...version, method: 'HEAD' },
        rpc('echo', 3),
      ];
      const wanted = ['"id":1', 'version', 'items', '"id":2', 'servers', '', '"id":3'];
      for (let round = 0; round < 3; round++) {
        one.write(requests.map(requestText).join(''));
        for (const [index, { method }] of requests.entries())
          expect(await one.response(method)).toMatchObject({
            status: 200,
            body: expect.stringContaining(wanted[index]!),
          });
      }
      await one.finish();
    });

    it('are answered completely when 2,000 arrive at once', async () => {
      const one = await open();
      // None of them reads the database as a member: of such reads some would be refused, so many at once.
      one.write(
        [version, a2e(), { path: '/livez' }, { ...version, method: 'HEAD' }].map(requestText).join('').repeat(500),
      );
      for (let index = 0; index < 2_000; index++)
        expect(await one.response(index % 4 === 3 ? 'HEAD' : 'GET')).toMatchObject({ status: 200 });
      await one.finish();
    });

    it('after a request that closes the connection are not answered', async () => {
      const one = await open();
      one.write(requestText({ ...orgs, headers: { ...bearer, connection: 'close' } }) + requestText(version));
      expect(await one.response()).toMatchObject({ status: 200, headers: { connection: 'close' } });
      await one.ended();
    });

    it.each([
      ['no HTTP', 'no request\r\n\r\n', 400],
      ['headers that are too long', `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      ['two lengths', 'POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
    ])('are answered up to a request with %s', async (_, bytes, status) => {
      const one = await open();
      one.write([orgs, rpc('slow', 1)].map(requestText).join('') + bytes);
      expect(await one.response()).toMatchObject({ status: 200, body: expect.stringContaining('items') });
      expect(await one.response()).toMatchObject({ status: 200, body: expect.stringContaining('"id":1') });
      expect(await one.response()).toMatchObject({ status, headers: { connection: 'close' }, body: '' });
    });

    it('after an invalid chunk end with 400', async () => {
      const one = await open();
      one.write(`${requestText(rpc('slow', 1))}${begun(a2e(), chunked)}no chunk\r\n${requestText(version)}`);
      expect(await one.response()).toMatchObject({ status: 200, body: expect.stringContaining('"id":1') });
      expect(await one.response()).toMatchObject({ status: 400, headers: { connection: 'close' }, body: '' });
    });
  });

  describe('of HTTP/1.0', () => {
    it.each([
      ['the management API', () => orgs],
      ['JSON-RPC', () => rpc('echo', 1)],
      ['the data of an org', () => ({ path: '/api/orgs/default/export', headers: bearer })],
    ])('close the connection at %s', async (_, request) => {
      const one = await open();
      const response = await one.exchange({ ...request(), version: '1.0' });
      expect(response).toMatchObject({ status: 200, headers: { connection: 'close' } });
      expect(response.headers).not.toHaveProperty('transfer-encoding');
      expect(response.body.trim()).toMatch(/\}$/);
      await one.ended();
    });

    it('keep it when they ask for that and the length is known', async () => {
      const one = await open();
      for (const request of [orgs, rpc('echo', 1), version, a2e()]) {
        const headers = { ...request.headers, connection: 'keep-alive' };
        expect(await one.exchange({ ...request, headers, version: '1.0' })).toMatchObject({
          status: 200,
          headers: { connection: 'keep-alive' },
        });
      }
      const headers = { ...bearer, connection: 'keep-alive' };
      const streamed = await one.exchange({ path: '/api/orgs/default/export', headers, version: '1.0' });
      expect(streamed).toMatchObject({ status: 200, headers: { connection: 'close' } });
      await one.ended();
    });
  });

  describe('with a body', () => {
    it.each(doors)('in chunks of any size at %s', async (_, request, status) => {
      const one = await open();
      for (const size of [1, 7, 1_000]) {
        one.write(begun(request(), chunked));
        for (let rest = bodyOf(request()); rest !== ''; rest = rest.slice(size)) one.write(chunk(rest.slice(0, size)));
        one.write('0\r\nX-Trailer: none\r\n\r\n');
        expect(await one.response()).toMatchObject({ status });
      }
      expect(await one.exchange(version)).toMatchObject({ status: 200 });
      await one.finish();
    });

    it.each(doors)('after one 100 Continue at %s', async (_, request, status) => {
      const one = await open();
      const body = bodyOf(request());
      one.write(begun(request(), { expect: '100-continue', 'content-length': String(Buffer.byteLength(body)) }));
      expect(await one.head()).toMatchObject({ status: 100, headers: {} });
      one.write(body);
      expect(await one.response()).toMatchObject({ status, informational: [] });
      expect(await one.exchange(version)).toMatchObject({ status: 200 });
      await one.finish();
    });

    it('gets its 100 Continue after the previous response', async () => {
      const one = await open();
      const body = bodyOf(a2e());
      one.write(requestText(rpc('slow', 1)));
      one.write(begun(a2e(), { expect: '100-continue', 'content-length': String(body.length) }));
      expect(await one.response()).toMatchObject({ status: 200, informational: [] });
      expect(await one.head()).toMatchObject({ status: 100 });
      one.write(body);
      expect(await one.response()).toMatchObject({ status: 200, informational: [] });
      await one.finish();
    });
  });

  /**
   * Reads a final status. Then it sends the rest of the body, and checks that the connection serves the next request or
   * has ended.
   */
  const refused = async (one: StrictConnection, status: number, rest: string): Promise<void> => {
    const response = await one.response('POST');
    expect(response).toMatchObject({ status });
    expect(JSON.parse(response.body)).toBeDefined();
    if (response.headers.connection === 'close') return one.ended();
    one.write(rest);
    expect(await one.exchange(version)).toMatchObject({ status: 200, informational: [] });
    await one.finish();
  };

  describe('that are refused', () => {
    const large = 'x'.repeat(500_000);
    const stranger = { authorization: 'Bearer rlt_no' };
    const length = { 'content-length': String(large.length) };
    const reasons: readonly [string, number, (request: StrictRequest) => StrictRequest][] = [
      ['an unknown credential', 401, (request) => ({ ...request, headers: { ...request.headers, ...stranger } })],
      [
        'a body of an unknown type',
        415,
        (request) => ({ ...request, headers: { ...request.headers, 'content-type': 'text/plain' } }),
      ],
      ['a body that is too large', 413, (request) => request],
    ];
    const cases = reasons.flatMap(([reason, status, spoilt]) =>
      doors.map(([door, request]) => [reason, door, status, () => spoilt(request())] as const),
    );

    it.each(cases)('for %s at %s while the body is in transit', async (_reason, _door, status, request) => {
      const one = await open();
      one.write(begun(request(), length));
      one.write(large.slice(0, 200_000));
      await refused(one, status, large.slice(200_000));
    });

    it.each(cases)('for %s at %s before the body is sent', async (_reason, _door, status, request) => {
      const one = await open();
      one.write(begun(request(), { expect: '100-continue', ...length }));
      await refused(one, status, large);
    });

    it.each(cases)('for %s at %s with chunks in transit', async (_reason, _door, status, request) => {
      const one = await open();
      one.write(begun(request(), chunked));
      for (let index = 0; index < 20; index++) one.write(chunk(large.slice(0, 10_000)));
      await refused(one, status, '0\r\n\r\n');
    });

    it.each(doors)(
      'for a body that is too large at %s, of a client that reads after its last byte',
      async (_, request) => {
        for (const framing of [{ 'content-length': '5000000' }, chunked]) {
          const one = await open();
          one.pause();
          one.write(begun(request(), framing));
          const piece = 'x'.repeat(100_000);
          for (let index = 0; index < 50; index++) one.write(framing === chunked ? chunk(piece) : piece);
          if (framing === chunked) one.write('0\r\n\r\n');
          await one.written();
          one.resume();
          expect(await one.response('POST')).toMatchObject({ status: 413 });
          expect(await one.exchange(version)).toMatchObject({ status: 200 });
          await one.finish();
        }
      },
    );

    it.each(doors)('for endless chunks at %s', async (_, request) => {
      const one = await open();
      one.write(begun(request(), chunked));
      const more = setInterval(() => one.write(chunk(large.slice(0, 10_000))), 5);
      expect(await one.response('POST')).toMatchObject({ status: 413 });
      await one.ended().catch(({ code }: { code?: string }) => expect(['ECONNRESET', 'EPIPE']).toContain(code));
      clearInterval(more);
      one.destroy();
    });
  });

  describe('of a client that leaves', () => {
    const gone = (one: StrictConnection): Promise<unknown> => {
      const socket = [...sockets].at(-1)!;
      const closed = new Promise((resolve) => socket.once('close', resolve));
      one.destroy();
      return closed;
    };

    it.each(doors)('in the headers and in the body at %s', async (_, request) => {
      for (const framing of [{ 'content-length': '90000' }, chunked]) {
        const head = begun(request(), framing);
        for (const sent of [head.slice(0, 40), head, `${head}${chunk('x'.repeat(5_000))}`]) {
          const one = await open();
          one.write(sent);
          await one.written();
          await eventually(
            () => [...sockets].at(-1)?.bytesRead,
            (count) => count === sent.length,
          );
          await gone(one);
        }
      }
      const one = await open();
      expect(await one.exchange(version)).toMatchObject({ status: 200 });
      await one.finish();
    });

    it('before its response, and during it', async () => {
      const waiting = await open();
      waiting.send({ method: 'POST', path: '/api/mailbox/box/lease?waitMs=30000', headers: bearer });
      const slow = await open();
      slow.send(rpc('slow', 1));
      const halfway = await open();
      halfway.write(requestText({ path: '/docs/swagger-ui-bundle.js' }).repeat(20));
      expect(await halfway.head()).toMatchObject({ status: 200 });
      for (const one of [waiting, slow, halfway]) one.destroy();
      await eventually(
        () => sockets.size,
        (count) => count === 0,
      );
      const one = await open();
      expect(await one.exchange(version)).toMatchObject({ status: 200 });
      await one.finish();
    });
  });
});
