import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

type Era = 'legacy' | 'modern';
const serverInfo = { name: 'cut', version: '1' };
const capabilities = { tools: {} };
const tools = [{ name: 'slow', inputSchema: { type: 'object' } }];
const hello: Record<Era, Record<string, object>> = {
  legacy: { initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo }, 'tools/list': { tools } },
  modern: {
    'server/discover': { supportedVersions: ['2026-07-28'], capabilities, serverInfo, ttlMs: 0, cacheScope: 'private' },
    'tools/list': { tools, ttlMs: 0, cacheScope: 'private' },
  },
};
const done = { content: [{ type: 'text', text: 'done' }] };

/** An MCP server that begins a streamed answer; the test controls how the stream continues. */
class CutServer {
  /** The received calls, and the streams that the gateway asked to resume. */
  readonly calls: { id: unknown; response: ServerResponse }[] = [];
  readonly resumed: unknown[] = [];
  resumes: (response: ServerResponse) => unknown = (response) => response.writeHead(405).end();
  private readonly http = createServer((request, response) => void this.serve(request, response));

  constructor(
    private readonly era: Era,
    private readonly start: string,
  ) {}

  async listen(): Promise<string> {
    await new Promise<void>((listening) => this.http.listen(0, '127.0.0.1', listening));
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}/mcp`;
  }

  close(): Promise<void> {
    this.http.closeAllConnections();
    return new Promise((closed) => void this.http.close(() => closed()));
  }

  /** Returns the message with the result of the call. */
  get answer(): string {
    return `data: ${JSON.stringify({ jsonrpc: '2.0', id: this.calls[0]!.id, result: done })}\n\n`;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') {
      const from = request.headers['last-event-id'];
      if (from === undefined) return void response.writeHead(405).end();
      this.resumed.push(from);
      return void this.resumes(response);
    }
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { id, method } = JSON.parse(text) as { id?: unknown; method: string };
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'tools/call') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(this.start);
      return void this.calls.push({ id, response });
    }
    const known = hello[this.era][method] ?? (method === 'ping' ? {} : undefined);
    const result = known && { ...known, ...(this.era === 'modern' && { resultType: 'complete' }) };
    const error = { code: -32601, message: 'no' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
  }
}

describe('a connection that breaks during a call', () => {
  let gateway: TestGateway;
  const open: { close: () => Promise<unknown> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    await gateway.call('DELETE', '/api/mcp/servers/cut');
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  const register = async (url: string, more: object = {}) =>
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'cut', url, ...more })).status).toBe(201);
  const call = () => gateway.rpc('tools/call', { name: 'cut__slow', arguments: {} });
  const lost = { error: { code: -32202, data: { code: 'remote_transport' } } };

  /** Starts a call and waits until its answer has begun. */
  const begun = async (era: Era, start: string) => {
    const server = new CutServer(era, start);
    open.push(server);
    await register(await server.listen());
    const pending = call();
    await eventually(
      () => server.calls.length,
      (count) => count === 1,
    );
    return { server, pending, response: server.calls[0]!.response };
  };
  const comment = ': nothing yet\n\n';
  const event = 'id: 7\nretry: 20\ndata: \n\n';

  it.each(['sessions', 'sse', 'modern', 'websocket'] as const)(
    'ends it at once with its own error: %s',
    async (kind: UpstreamKind) => {
      const one = await TestUpstream.start(kind);
      open.push(one);
      let isBegun = false;
      one.add('slow', () => {
        isBegun = true;
        return new Promise(() => undefined);
      });
      await register(one.url, { transport: { sse: 'sse', websocket: 'websocket' }[kind as string] });
      const pending = call();
      await eventually(
        () => isBegun,
        (is) => is,
      );
      await one.down();
      expect(await pending).toMatchObject(lost);
      await one.listen();
      const { result } = await eventually(
        () => gateway.rpc('tools/call', { name: 'cut__echo', arguments: { text: 'back' } }),
        (answer) => answer.result !== undefined,
      );
      expect(result.content[0].text).toBe('back');
    },
  );

  it.each([
    ['legacy', 'destroy', comment],
    ['legacy', 'end', comment],
    ['modern', 'destroy', comment],
    ['modern', 'end', comment],
    ['modern', 'destroy', event],
  ] as const)('ends it when the stream of a %s server ends without the answer: %s', async (era, way, start) => {
    const { server, pending, response } = await begun(era, start);
    response[way]();
    expect(await pending).toMatchObject(lost);
    expect([server.calls.length, server.resumed]).toEqual([1, []]);
  });

  it('continues with a stream that its server still has, however often it breaks', async () => {
    const { server, pending, response } = await begun('legacy', event);
    server.resumes = (again) => {
      again.writeHead(200, { 'content-type': 'text/event-stream' });
      again.end(server.resumed.length < 3 ? `id: ${7 + server.resumed.length}\ndata: \n\n` : server.answer);
    };
    response.destroy();
    expect((await pending).result).toEqual(done);
    expect([server.calls.length, server.resumed]).toEqual([1, ['7', '8', '9']]);
  });

  it.each([
    ['does not know it', 404],
    ['supports no such streams', 405],
    ['stays unavailable', 503],
    ['is gone', undefined],
  ] as const)('ends it when the server of the stream %s', async (_, status) => {
    const { server, pending, response } = await begun('legacy', event);
    server.resumes = (again) => again.writeHead(status!).end();
    if (status === undefined) await server.close();
    response.destroy();
    expect(await pending).toMatchObject(lost);
    expect(server.calls).toHaveLength(1);
    if (status !== undefined && status < 500) expect(server.resumed).toEqual(['7']);
  });
});
