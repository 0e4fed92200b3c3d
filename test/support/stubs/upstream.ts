import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server as LegacyServer } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { WebSocketServer, type WebSocket } from 'ws';
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server';

/**
 * The transport of a server: sessions of the 2025 era, the older two SSE endpoints, a WebSocket, or only the 2026-07-28
 * revision.
 */
export type UpstreamKind = 'sessions' | 'sse' | 'websocket' | 'modern';

type Tool = Record<string, unknown> & { name: string };
type Answer = (args: Record<string, unknown>, signal: AbortSignal, server?: LegacyServer) => unknown;

const anyParams = z.looseObject({});
const declaredKey = 'io.modelcontextprotocol/clientCapabilities';

/** Thrown by a tool to make its server answer with a protocol error. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** A real MCP server on loopback, built with the official SDKs. */
export class TestUpstream {
  readonly tools = new Map<string, { tool: Tool; answer: Answer }>();
  /** Further capabilities; `methods` answers their requests. */
  readonly capabilities: Record<string, object> = {};
  readonly methods = new Map<string, (params: any) => unknown>();
  /** Runs before the server lists its tools. */
  listing: () => unknown = () => undefined;
  /** The headers of each request. */
  readonly seen: IncomingMessage['headers'][] = [];
  readonly httpMethods: string[] = [];
  /** The path of each request, with its query. */
  readonly paths: string[] = [];
  /** Decides by the headers which requests are answered; others get a 401. */
  admits: (headers: IncomingMessage['headers']) => boolean = () => true;
  readonly calls: { name: string; args: unknown; declared?: any }[] = [];
  /** The `_meta` of each call of a tool. */
  readonly metas: unknown[] = [];
  /** Called when a client of the 2025 era has connected. */
  initialized: (server: LegacyServer) => unknown = () => undefined;
  /** Notifications without a handler. */
  readonly told: { method: string; params?: any }[] = [];
  private readonly sessions = new Map<string, { server: LegacyServer; handle: Handle }>();
  private readonly modern = createMcpHandler(() => this.modernServer(), { legacy: 'reject' });
  private readonly http = createServer((request, response) => void this.serve(request, response));
  private readonly sockets = new WebSocketServer({ noServer: true });
  private port = 0;

  private constructor(private readonly kind: UpstreamKind) {
    if (kind !== 'websocket') return;
    this.http.on('upgrade', (request, socket, head) => {
      this.seen.push(request.headers);
      if (!this.admits(request.headers))
        return void socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n');
      this.sockets.handleUpgrade(request, socket, head, (client) => void this.serveSocket(client));
    });
  }

  static async start(kind: UpstreamKind = 'sessions'): Promise<TestUpstream> {
    const one = new TestUpstream(kind);
    one.add('echo', ({ text }) => ({ content: [{ type: 'text', text: String(text) }] }));
    await one.listen();
    return one;
  }

  get url(): string {
    return `${this.kind === 'websocket' ? 'ws' : 'http'}://127.0.0.1:${this.port}/mcp`;
  }

  /** Number of open WebSockets. */
  get connections(): number {
    return this.sockets.clients.size;
  }

  add(name: string, answer: Answer, more: Record<string, unknown> = {}): void {
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } } };
    this.tools.set(name, { tool: { name, inputSchema, ...more }, answer });
  }

  /** Notifies all connected clients that the tools, or another list, changed. */
  async tellChanged(list: 'tools' | 'resources' | 'prompts' = 'tools'): Promise<void> {
    this.modern.notify[`${list}Changed`]();
    const method = `notifications/${list}/list_changed` as 'notifications/tools/list_changed';
    await Promise.all([...this.sessions.values()].map(({ server }) => server.notification({ method })));
  }

  /** Notifies all connected clients that a resource changed. */
  async tellUpdated(uri: string): Promise<void> {
    this.modern.notify.resourceUpdated(uri);
    const updated = { method: 'notifications/resources/updated' as const, params: { uri } };
    await Promise.all([...this.sessions.values()].map(({ server }) => server.notification(updated)));
  }

  /** Sends any notification to all connected clients. */
  async say(method: string, params: object): Promise<void> {
    const notification = { method, params } as never;
    await Promise.all([...this.sessions.values()].map(({ server }) => server.notification(notification)));
  }

  /** Forgets all sessions, as after a restart. */
  forgetSessions(): void {
    this.sessions.clear();
  }

  /** Stops listening until `listen` is called again. */
  async down(): Promise<void> {
    this.sessions.clear();
    this.http.closeAllConnections();
    for (const client of this.sockets.clients) client.terminate();
    await new Promise((resolve) => this.http.close(resolve));
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.http.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.http.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await this.modern.close();
    if (this.http.listening) await this.down();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.seen.push(request.headers);
    this.httpMethods.push(request.method!);
    this.paths.push(request.url!);
    try {
      if (!this.admits(request.headers)) return void response.writeHead(401).end();
      if (this.kind === 'websocket') return void response.writeHead(426).end();
      if (this.kind === 'modern') await toNodeHandler(this.modern)(request, response);
      else await (this.kind === 'sse' ? this.serveSse(request, response) : this.serveSessions(request, response));
    } catch {
      response.destroy();
    }
  }

  private async serveSessions(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? this.sessions.get(id) : undefined;
    if (known) return known.handle(request, response);
    if (id !== undefined) return void response.writeHead(404).end();
    const server = this.legacyServer();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) =>
        void this.sessions.set(session, { server, handle: (...http) => transport.handleRequest(...http) }),
    });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  }

  private async serveSse(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = new URL(request.url!, this.url).searchParams.get('sessionId');
    if (request.method === 'POST') {
      const known = this.sessions.get(id ?? '');
      return known ? known.handle(request, response) : void response.writeHead(404).end();
    }
    const transport = new SSEServerTransport('/messages', response);
    const server = this.legacyServer();
    this.sessions.set(transport.sessionId, { server, handle: (...http) => transport.handlePostMessage(...http) });
    await server.connect(transport);
  }

  private async serveSocket(client: WebSocket): Promise<void> {
    const transport: Transport = {
      start: () => Promise.resolve(),
      send: (message) => Promise.resolve(client.send(JSON.stringify(message))),
      close: () => Promise.resolve(client.close()),
    };
    client.on('message', (data: Buffer) => transport.onmessage?.(JSON.parse(data.toString()) as JSONRPCMessage));
    const id = randomUUID();
    client.once('close', () => {
      this.sessions.delete(id);
      transport.onclose?.();
    });
    const server = this.legacyServer();
    this.sessions.set(id, { server, handle: () => Promise.resolve() });
    await server.connect(transport);
  }

  private legacyServer(): LegacyServer {
    const server = new LegacyServer(
      { name: 'upstream', version: '1.2.3' },
      { capabilities: { tools: { listChanged: true }, ...this.capabilities } },
    );
    server.oninitialized = () => void this.initialized(server);
    server.fallbackNotificationHandler = (notification) => Promise.resolve(void this.told.push(notification as never));
    server.fallbackRequestHandler = async ({ method, params }) => {
      const answer = this.methods.get(method);
      if (!answer) throw new McpError(-32601, 'Method not found');
      this.calls.push({ name: method, args: params });
      return this.answered(
        () => answer(params),
        ({ code, message, data }) => new McpError(code, message, data),
      );
    };
    server.setRequestHandler(ListToolsRequestSchema, () =>
      this.answered(
        () => this.listed(),
        ({ code, message, data }) => new McpError(code, message, data),
      ),
    );
    server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) =>
      this.call(params, signal, ({ code, message, data }) => new McpError(code, message, data), server),
    );
    return server;
  }

  private modernServer(): Server {
    const server = new Server(
      { name: 'upstream', version: '1.2.3' },
      { capabilities: { tools: { listChanged: true }, ...this.capabilities } },
    );
    for (const [method, answer] of this.methods)
      server.setRequestHandler(method, { params: anyParams }, (given, { mcpReq: { inputResponses, envelope } }) => {
        const params = { ...given, ...(inputResponses && { inputResponses }) };
        this.calls.push({ name: method, args: params, declared: (envelope as any)?.[declaredKey] });
        return this.answered(
          () => answer(params),
          ({ code, message, data }) => ProtocolError.fromError(code, message, data),
        );
      });
    server.setRequestHandler('tools/list', () =>
      this.answered(
        () => this.listed(),
        ({ code, message, data }) => ProtocolError.fromError(code, message, data),
      ),
    );
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
      this.call(
        params,
        mcpReq.signal,
        ({ code, message, data }) => ProtocolError.fromError(code, message, data),
        undefined,
        (mcpReq.envelope as any)?.[declaredKey],
      ),
    );
    return server;
  }

  private async listed(): Promise<{ tools: Tool[] }> {
    await this.listing();
    return { tools: [...this.tools.values()].map(({ tool }) => tool) };
  }

  private async call(
    { name, arguments: args = {}, _meta }: { name: string; arguments?: Record<string, unknown>; _meta?: unknown },
    signal: AbortSignal,
    refused: (refusal: Refusal) => Error,
    server?: LegacyServer,
    declared?: unknown,
  ): Promise<never> {
    this.metas.push(_meta);
    this.calls.push({ name, args, ...(declared !== undefined && { declared }) });
    return this.answered(() => {
      const known = this.tools.get(name);
      if (!known) throw new Refusal(-32602, `no tool ${name}`);
      return known.answer(args, signal, server);
    }, refused);
  }

  private async answered(answer: () => unknown, refused: (refusal: Refusal) => Error): Promise<never> {
    try {
      return (await answer()) as never;
    } catch (error) {
      throw error instanceof Refusal ? refused(error) : error;
    }
  }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => Promise<void>;
