import type { JsonObject } from '../kernel/json.js';
import { trimEnd } from '../kernel/text.js';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { httpOf } from '../platform/http/outbound/safe-socket.js';
import { pushType, questionTypes, type A2eMessage } from '../protocol/a2e/messages.js';
import { newMessage, PostChannel, SocketChannel, type Channel, type SocketHearer } from './client/client-channels.js';
import { A2EClientError } from './client/client-errors.js';
import { noServerFor, requireStrategy, ToolIndex } from './client/client-tool-index.js';
import type {
  A2EClientOptions,
  Answerer,
  PromptInfo,
  Push,
  RequestOptions,
  ResourceInfo,
  ServerConfig,
  ServerInfo,
  ToolApi,
  ToolInfo,
  ToolReply,
} from './client/client-options.js';

export { A2EClientError } from './client/client-errors.js';
export type * from './client/client-options.js';

/** Default timeouts in milliseconds (AE-75). */
const rpcMs = 10_000;
const registerMs = 20_000;
/** Longer than any call: the gateway ends a call earlier, at the timeout of its server. */
const callMs = 3_600_000;

/** Options of a tool call. */
export interface CallToolOptions extends RequestOptions {
  /** How to choose among several servers with the tool: `first` (default), `round-robin` or `least-loaded`. */
  strategy?: string;
  /** Server to call; no other is tried. */
  serverId?: string;
}

/**
 * Client for the MCP servers of a Rialto gateway, over a WebSocket or with POST only. Each method rejects with
 * `A2EClientError`.
 *
 * ```ts
 * import { A2EClient } from 'rialto/a2e';
 *
 * const client = new A2EClient('https://gateway.example.com', { token });
 * client.onPush(({ server_id, method }) => console.log(server_id, method));
 * await client.registerServer({ server_id: 'files', url: 'https://files.example.com/mcp' });
 * console.log((await client.callTool('read_file', { path: '/etc/motd' })).text);
 * client.close();
 * ```
 */
export class A2EClient {
  private readonly channel: Channel;
  private readonly out: SafeFetch;
  private readonly index = new ToolIndex();
  private isIndexed = false;
  private readonly pushListeners = new Set<(push: Push) => void>();
  private readonly closeListeners = new Set<() => void>();
  private readonly answerers = new Map<string, Answerer>();
  private readonly subscribed = new Set<string>();

  /**
   * Prepares a client; connects with the first request. Throws `a2e_invalid` when `url` is not an HTTP or WebSocket
   * URL.
   *
   * @param url URL of the gateway; the client sends nothing to other origins.
   */
  constructor(
    url: string,
    private readonly options: A2EClientOptions,
  ) {
    if (!URL.canParse(httpOf(url)) || !/^https?:/i.test(httpOf(url)))
      throw new A2EClientError('a2e_invalid', 'the address of the gateway is not an HTTP or WebSocket URL');
    const base = new URL(httpOf(url));
    this.out = new SafeFetch({ allow: parseAllowList(base.origin), httpsOnly: false });
    const connection = { url: doorOf(base), token: options.token, out: this.out };
    this.channel =
      options.transport === 'post' ? new PostChannel(connection) : new SocketChannel(connection, this.hearer());
  }

  /** Lists the servers that the caller may see; only those with `status` when it is given. */
  async listServers(query: { status?: ServerInfo['status'] } = {}, options?: RequestOptions): Promise<ServerInfo[]> {
    const { servers } = await this.request('mcp/server/list/req', { ...query }, options);
    if (query.status === undefined) this.fillIndex(servers as unknown as ServerInfo[]);
    return servers as unknown as ServerInfo[];
  }

  /** Connects a server and registers it permanently. Waits 20 s by default. */
  async registerServer(config: ServerConfig, options?: RequestOptions): Promise<ServerInfo> {
    this.isIndexed = false;
    const payload = { ...config } as unknown as JsonObject;
    const { server } = await this.request('mcp/server/register/req', payload, { timeoutMs: registerMs, ...options });
    return server as unknown as ServerInfo;
  }

  async unregisterServer(serverId: string, options?: RequestOptions): Promise<void> {
    this.isIndexed = false;
    await this.request('mcp/server/unregister/req', { server_id: serverId }, options);
  }

  /** Lists the tools of a server with the descriptions and schemas that a model needs. */
  async listTools(serverId: string, options?: RequestOptions): Promise<ToolInfo[]> {
    const payload = { server_id: serverId, include_tools: true };
    const { servers } = await this.request('mcp/server/list/req', payload, options);
    return (servers as unknown as { tools: ToolInfo[] }[])[0]?.tools ?? [];
  }

  /** Returns the ids of the servers that have a tool; empty when no server has it. */
  async findTool(name: string, options?: RequestOptions): Promise<string[]> {
    if (!this.isIndexed || this.index.serversWith(name).length === 0) await this.listServers({}, options);
    return this.index.serversWith(name);
  }

  /**
   * Calls a tool by its own name or its full name. With a `toolApi`, that one calls the tool at the chosen server
   * instead of the gateway. Rejects with `mcp_tool_not_found`, "No server found for tool", and with `a2e_invalid` for
   * an unknown strategy.
   */
  // The overload with functions comes first: TypeScript infers the parameters of inline functions from the first
  // overload that fits.
  callTool<Result>(
    name: string,
    args: JsonObject,
    options: CallToolOptions & { toolApi: ToolApi<Result> },
  ): Promise<Result>;
  callTool(name: string, args?: JsonObject, options?: CallToolOptions): Promise<ToolReply>;
  async callTool(
    name: string,
    args: JsonObject = {},
    { strategy = 'first', serverId, toolApi, ...options }: CallToolOptions & { toolApi?: ToolApi<unknown> } = {},
  ): Promise<unknown> {
    const known = requireStrategy(strategy);
    if (serverId !== undefined && !toolApi)
      return this.request(
        'mcp/call_tool',
        { tool: name, arguments: args, server_id: serverId },
        withCallTimeout(options),
      );
    if ((await this.findTool(name, options)).length === 0) throw noServerFor(name);
    if (toolApi) return this.index.callAtServer(name, known, ({ toolName }) => toolApi.callTool(toolName, args));
    return this.request('mcp/call_tool', { tool: name, arguments: args, strategy: known }, withCallTimeout(options));
  }

  async listResources(serverId?: string, options?: RequestOptions): Promise<ResourceInfo[]> {
    const { resources } = await this.request('mcp/resource/list/req', ofServer(serverId), options);
    return resources as unknown as ResourceInfo[];
  }

  /** Reads a resource. Each content has `text`, or `blob` in base64. */
  async readResource(uri: string, serverId?: string, options?: RequestOptions): Promise<JsonObject[]> {
    const { contents } = await this.request(
      'mcp/resource/read/req',
      { uri, ...ofServer(serverId) },
      { timeoutMs: 30_000, ...options },
    );
    return contents as JsonObject[];
  }

  /**
   * Subscribes to changes of a resource, which arrive as pushes, also after a reconnect. Rejects with
   * `mcp_capability_missing` when the transport is POST.
   */
  async subscribeResource(uri: string, options?: RequestOptions): Promise<void> {
    await this.request('mcp/resource/subscribe/req', { uri }, options);
    this.subscribed.add(uri);
  }

  async listPrompts(serverId?: string, options?: RequestOptions): Promise<PromptInfo[]> {
    const { prompts } = await this.request('mcp/prompt/list/req', ofServer(serverId), options);
    return prompts as unknown as PromptInfo[];
  }

  /** Returns a prompt that the server filled in with the arguments. */
  async getPrompt(
    name: string,
    args: Record<string, string> = {},
    { serverId, ...options }: RequestOptions & { serverId?: string } = {},
  ): Promise<{ description: string | null; messages: JsonObject[] }> {
    const payload = { name, arguments: args, ...ofServer(serverId) };
    const reply = await this.request('mcp/prompt/get/req', payload, { timeoutMs: 30_000, ...options });
    return { description: reply.description as string | null, messages: reply.messages as JsonObject[] };
  }

  /** Sends a notification to a server, `notifications/…`. Resolves when it is sent: there is no reply. */
  notify(serverId: string, method: string, params: JsonObject = {}): Promise<void> {
    const message = newMessage(pushType, { server_id: serverId, method, params });
    return this.channel.send(message, { timeoutMs: this.options.timeoutMs ?? rpcMs });
  }

  /** Adds a listener for notifications of servers and for changes. Returns a function that removes it. */
  onPush(listener: (push: Push) => void): () => void {
    this.pushListeners.add(listener);
    return () => void this.pushListeners.delete(listener);
  }

  /** Adds a listener for a lost connection; the next request opens a new one. Returns a function that removes it. */
  onClose(listener: () => void): () => void {
    this.closeListeners.add(listener);
    return () => void this.closeListeners.delete(listener);
  }

  /**
   * Sets the function that samples a model for servers. Call it before the first request, because the client declares
   * its capabilities when it connects.
   */
  onSampling(answer: Answerer): void {
    this.answerers.set(questionTypes['sampling/createMessage'], answer);
  }

  /**
   * Sets the function that returns the roots for servers, as `{ roots: [{ uri, name }] }`. Call it before the first
   * request.
   */
  onRoots(answer: Answerer): void {
    this.answerers.set(questionTypes['roots/list'], answer);
  }

  /** Opens the connection, so that pushes arrive without an earlier request. */
  async connect(options?: RequestOptions): Promise<void> {
    await this.listServers({}, options);
  }

  async close(): Promise<void> {
    this.channel.close();
    await this.out.close();
  }

  private request(type: string, payload: JsonObject, options: RequestOptions = {}): Promise<JsonObject> {
    return this.channel.request(type, payload, { timeoutMs: this.options.timeoutMs ?? rpcMs, ...options });
  }

  private fillIndex(servers: ServerInfo[]): void {
    this.index.fill(servers);
    // Without pushes the client does not learn that the index is outdated.
    this.isIndexed = this.options.transport !== 'post';
  }

  private hearer(): SocketHearer {
    return {
      query: () => `?capabilities=${this.capabilities().join(',')}`,
      heard: (message) => this.receiveMessage(message),
      opened: () => this.resubscribe(),
      closed: () => {
        this.isIndexed = false;
        for (const listener of this.closeListeners) listener();
      },
    };
  }

  private capabilities(): string[] {
    const named = { sampling: questionTypes['sampling/createMessage'], roots: questionTypes['roots/list'] };
    return Object.entries(named).flatMap(([name, type]) => (this.answerers.has(type) ? [name] : []));
  }

  private resubscribe(): void {
    for (const uri of this.subscribed) void this.subscribeResource(uri).catch(() => undefined);
  }

  private receiveMessage(message: A2eMessage): void {
    if (message.type !== pushType) return void this.answerQuestion(message).catch(() => undefined);
    const push = message.payload as unknown as Push;
    if (push.method === 'notifications/servers/changed') this.isIndexed = false;
    for (const listener of this.pushListeners) listener(push);
  }

  private async answerQuestion({ type, id, payload }: A2eMessage): Promise<void> {
    const answerType = type.replace(/req$/, 'resp');
    const send = (body: JsonObject): Promise<void> =>
      this.channel.send(newMessage(answerType, { req_id: id, ...body }), { timeoutMs: rpcMs });
    const answerer = this.answerers.get(type);
    try {
      if (!answerer) throw new Error(`the agent has no handler for ${type}`);
      await send({ ok: true, result: await answerer(payload as unknown as Parameters<Answerer>[0]) });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : 'the agent refused';
      await send({ ok: false, error: { code: 'mcp_sampling_refused', message, retryable: false } });
    }
  }
}

function ofServer(serverId: string | undefined): JsonObject {
  return serverId === undefined ? {} : { server_id: serverId };
}

function withCallTimeout(options: RequestOptions): RequestOptions {
  return { timeoutMs: callMs, ...options };
}

/** URL of the A2E door, from a base URL or from the URL of the door itself. */
function doorOf({ origin, pathname }: URL): string {
  const base = trimEnd(pathname, '/');
  return `${origin}${base.endsWith('/a2e') ? base : `${base}/a2e`}`;
}
