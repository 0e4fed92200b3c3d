import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import type { Peer } from '../kernel/peer.js';
import { VerbBus, type VerbCall } from '../kernel/verb-bus.js';
import { SuspendedCalls, type HeldRequest } from './suspended-calls/suspended-calls.js';
import { changedToolsWait } from '../policy/policy.types.js';
import { ToolLimits } from '../policy/tool-limits.js';
import { headersFor, paramHeadersOf, wrongHeader } from '../protocol/mcp/param-headers.js';
import { asksFirst, questionsOf } from './client-requests/client-requests.js';
import { mayRead, ownerOfUri } from './storage/registered-server.js';
import type { RegisteredServer, UpstreamPrompt, UpstreamTool } from './registered-server.types.js';
import type { ServerConnections } from './connections/server-connections.js';
import { CallerConnections } from './credentials/caller-connections.js';
import { UpstreamPool } from './connections/upstream-pool.js';
import { taskIn } from './connections/task-handle.js';
import { resultOf, type ResultKind } from './upstream-result.js';
import { mayAnswerByTask, withTasks, type TaskTaker } from './upstream-tasks.types.js';
import { UpstreamsService } from './upstreams.service.js';

/**
 * Limits of one call: how many requests its server may send to the caller, and how many characters of notifications it
 * may send. Notifications beyond the limit are dropped.
 */
const maxQuestions = 100;
const maxCharacters = 10_485_760;
/** Timeout in milliseconds for the opening of a connection to learn the era of its server. */
const openMs = 30_000;

/**
 * Target of a call, by its canonical name. An unknown name is authorized too, so that a denied name gives the same
 * answer as an unknown one.
 */
interface CallTarget {
  readonly canonical: string;
  readonly serverId: string;
  /** Portable name of a tool. */
  readonly legacyAlias?: string;
  /** Name that the caller used. */
  readonly calledAs?: string;
}

export interface UpstreamCall extends CallTarget {
  readonly target?: UpstreamTool;
  readonly args: JsonObject;
  /** Accepts a task in place of a result. When absent, the server is not told that it may answer with a task. */
  readonly tasks?: TaskTaker;
}

export interface PromptCall extends CallTarget {
  readonly target?: UpstreamPrompt;
}

interface UpstreamRequest {
  readonly server: RegisteredServer;
  readonly connections: ServerConnections;
  readonly kind: ResultKind;
  readonly method: string;
  readonly params: JsonObject;
  readonly tasks?: TaskTaker;
  /** Input schema of the called tool. */
  readonly inputSchema?: Json;
}

/**
 * Calls tools, resources, prompts and completions of MCP servers. Authorizes each request first, then passes on the
 * answer of the server.
 */
@Injectable()
export class UpstreamCalls {
  constructor(
    private readonly connections: CallerConnections,
    private readonly pool: UpstreamPool,
    private readonly upstreams: UpstreamsService,
    private readonly verbs: VerbBus,
    private readonly suspended: SuspendedCalls,
    private readonly limits: ToolLimits,
  ) {}

  /**
   * Calls a tool. Throws `denied`, `tool_changed`, `not_found` for an unknown name, `credential_required` and
   * `credential_refused` for a server with per-user credentials, `header_mismatch`, and what UpstreamConnection.request
   * throws.
   */
  async call(ctx: CallContext, { target, args, tasks, ...identity }: UpstreamCall): Promise<JsonObject> {
    const decided = verbCallOf(ctx, 'mcp_call', 'Tool', identity, args);
    const params = { name: target?.tool.name ?? '', arguments: args };
    try {
      const more = { tasks, inputSchema: target?.tool.inputSchema };
      return await this.ask(decided, target?.server, 'tool', 'tools/call', params, more);
    } catch (error) {
      throw asToolChanged(error, target);
    }
  }

  /**
   * Returns whether the caller of a running call may still make it; neither audited nor announced. A changed tool does
   * not end the call, because the call was made with the approved definition.
   */
  async mayStillCall(ctx: CallContext, { args, ...identity }: UpstreamCall): Promise<boolean> {
    const { allowed, policies } = await this.verbs.ask(verbCallOf(ctx, 'mcp_call', 'Tool', identity, args));
    return allowed || policies.includes(changedToolsWait);
  }

  /** Reads a resource from the server that most likely offers it. Throws as `call` does. */
  read(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<JsonObject> {
    const server = ownerOfUri(servers, uri);
    return this.ask(readOf(ctx, server, uri), unlessExcluded(server, uri), 'resource', 'resources/read', { uri });
  }

  /**
   * Returns the server that reports changes of a resource. Authorized like a read of it. Throws `denied`, `not_found`,
   * and `unprocessable` for a server that cannot report changes.
   */
  watched(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<RegisteredServer> {
    const owner = ownerOfUri(servers, uri);
    return this.verbs.around(readOf(ctx, owner, uri), () => {
      const server = unlessExcluded(owner, uri);
      if (!server) return Promise.reject(new RialtoError('not_found', { message: 'no such resource' }));
      const { resources } = server.row.offer.capabilities;
      if (isJsonObject(resources) && resources.subscribe === true) return Promise.resolve(server);
      const message = `the MCP server "${server.row.serverId}" does not report changes of its resources`;
      return Promise.reject(new RialtoError('unprocessable', { message }));
    });
  }

  /** Returns whether `watched` would still return this server; neither audited nor announced. */
  async mayWatch(ctx: CallContext, server: RegisteredServer, uri: string): Promise<boolean> {
    if (!unlessExcluded(server, uri) || !(await this.connections.mayUse(ctx, server.row))) return false;
    return this.verbs.permits(readOf(ctx, server, uri));
  }

  /**
   * Subscribes to changes of a resource at a server that `watched` returned, until the returned function is called.
   * Throws as `call` does.
   */
  watch(ctx: CallContext, { row }: RegisteredServer, uri: string): Promise<() => void> {
    return this.connections.watch(ctx, row, uri);
  }

  /**
   * Sets the listener for changes of watched resources.
   * @param tell gets the caller that alone watches the resource; absent for a shared connection.
   */
  onUpdated(tell: (orgId: string, serverId: string, uri: string, caller?: string) => void): void {
    this.pool.onUpdated(({ orgId, serverId }, uri, caller) => tell(orgId, serverId, uri, caller));
  }

  /**
   * Sets the listener for notifications of servers.
   * @param tell gets the row id of the server, and the caller for a per-user connection.
   */
  onHeard(tell: (orgId: string, server: string, method: string, params: JsonObject, caller?: string) => void): void {
    this.pool.onHeard(({ orgId, id }, method, params, caller) => tell(orgId, id, method, params, caller));
  }

  /**
   * Keeps the connection for notifications open while it is idle, after `ready` opened it, until the returned function
   * is called. Throws `credential_required`.
   */
  attend(ctx: CallContext, { row }: RegisteredServer): Promise<() => void> {
    return this.connections.attend(ctx, row);
  }

  /** Opens the caller's connection to a server, unless it is open. Throws as `call` does. */
  ready(ctx: CallContext, { row }: RegisteredServer): Promise<void> {
    const { timeoutMs } = row;
    return this.connections.use(ctx, row, ({ shared: main }) => main.ready({ timeoutMs, signal: ctx.signal }));
  }

  /** Sends a notification to a server, authorized like a call of its tool of that name. Throws as `call` does. */
  notify(ctx: CallContext, { row }: RegisteredServer, method: string, params: JsonObject): Promise<void> {
    const { timeoutMs, serverId } = row;
    const { peer, signal } = ctx;
    return this.verbs.around(requestOf(ctx, serverId, method), () =>
      this.connections.use(ctx, row, (connections) => connections.notify(method, params, { timeoutMs, peer, signal })),
    );
  }

  /**
   * Notifies servers that the roots of a client changed, on the connections that this process has for that client.
   * @param key the key of the client, as in Peer.
   */
  rootsChanged(orgId: string, key: string): void {
    this.pool.rootsChanged(orgId, key);
  }

  /** Gets a prompt. Throws as `call` does. */
  prompt(ctx: CallContext, { target, ...identity }: PromptCall, args: JsonObject | undefined): Promise<JsonObject> {
    const decided = verbCallOf(ctx, 'mcp_prompt', 'Prompt', identity, args);
    const params = { name: target?.prompt.name ?? '', ...(args && { arguments: args }) };
    return this.ask(decided, target?.server, 'prompt', 'prompts/get', params);
  }

  /** Completes an argument of a prompt. `params` are those of the protocol without `ref`. Throws as `call` does. */
  completePrompt(ctx: CallContext, { target, ...identity }: PromptCall, params: JsonObject): Promise<JsonObject> {
    const ref = { type: 'ref/prompt', name: target?.prompt.name ?? '' };
    const decided = verbCallOf(ctx, 'mcp_prompt', 'Prompt', identity);
    return this.ask(decided, target?.server, 'completion', 'completion/complete', { ...params, ref });
  }

  /** Completes a variable of a resource template. Throws as `call` does. */
  completeUri(
    ctx: CallContext,
    servers: readonly RegisteredServer[],
    uri: string,
    params: JsonObject,
  ): Promise<JsonObject> {
    const server = ownerOfUri(servers, uri);
    const decided = readOf(ctx, server, uri);
    const ref = { type: 'ref/resource', uri };
    return this.ask(decided, unlessExcluded(server, uri), 'completion', 'completion/complete', { ...params, ref });
  }

  private ask(
    decided: VerbCall,
    server: RegisteredServer | undefined,
    kind: ResultKind,
    method: string,
    params: JsonObject,
    more: Pick<UpstreamRequest, 'tasks' | 'inputSchema'> = {},
  ): Promise<JsonObject> {
    const { ctx, resource } = decided;
    return this.verbs.around(decided, async () => {
      if (!server) throw await this.absent(ctx, resource.parent, kind);
      return this.limits.around(ctx, server.row.id, () =>
        this.connections.use(ctx, server.row, (connections) =>
          this.sendAdmitted(decided, { ...more, server, connections, kind, method, params }),
        ),
      );
    });
  }

  /**
   * Builds `not_found` for a name that is unknown to this caller. Throws `credential_required` first when the server
   * shows its tools only to callers with a credential.
   */
  private async absent(ctx: CallContext, serverId: string | undefined, kind: ResultKind): Promise<RialtoError> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const server = servers.find(({ row }) => row.serverId === serverId);
    if (server) await this.connections.requireUse(ctx, server.row);
    return new RialtoError('not_found', { message: `no such ${kind}` });
  }

  private async sendAdmitted(
    decided: VerbCall,
    { server, connections, kind, method, params, tasks, inputSchema }: UpstreamRequest,
  ): Promise<JsonObject> {
    const { ctx, args = {} } = decided;
    const { serverId, timeoutMs } = server.row;
    const inHeaders = paramHeadersOf(inputSchema);
    requireHeaders(ctx.peer, inHeaders, args);
    const headers = headersFor(inHeaders, args);
    const taker = tasks && mayAnswerByTask(server) ? tasks : undefined;
    taker?.admit();
    const capabilities = taker && withTasks(ctx.peer?.capabilities);
    const stillMay = kind === 'tool' ? () => this.requireStillAllowed(decided) : undefined;
    const run = (peer: Peer | undefined, signal: AbortSignal | undefined): Promise<JsonObject> => {
      const owner = { peer: this.decidedPeer(ctx, serverId, peer), caller: callerOf(ctx.principal) };
      const { meta } = ctx;
      return connections.request(method, params, {
        timeoutMs,
        signal,
        ...owner,
        capabilities,
        headers,
        meta,
        stillMay,
      });
    };
    const request = ctx.peer?.era === 'modern' ? { ctx, peer: ctx.peer, method, params } : undefined;
    let suspended = request && (await this.suspended.resume(request));
    if (!suspended && kind === 'tool') await this.limits.admit(ctx, decided.verb, server.row.callsPerMinute);
    suspended ??= request && (await this.suspend(connections, request, run));
    const answer = suspended ?? (await run(ctx.peer, ctx.signal));
    const task = taker && taskIn(answer);
    if (task) return taker.take(task);
    if (!asksFirst(answer)) return resultOf(answer, kind);
    if (!suspended) await this.decideQuestions(ctx, serverId, answer);
    return answer;
  }

  /** Throws `tool_changed` when the call is no longer allowed as it was decided. */
  private async requireStillAllowed(decided: VerbCall): Promise<void> {
    if (!(await this.verbs.permits(decided))) throw toolChanged({ verb: decided.verb });
  }

  /**
   * Suspends a call to a server of the 2025 era while a client of the 2026-07-28 revision answers its questions.
   * Returns undefined when the call need not be suspended. Throws `invalid_params` for a request state of an unknown
   * call.
   */
  private async suspend(
    connections: ServerConnections,
    request: HeldRequest,
    run: (peer: Peer, signal: AbortSignal) => Promise<JsonObject>,
  ): Promise<JsonObject | undefined> {
    const { peer, ctx } = request;
    if (Object.keys(peer.capabilities).length === 0) return undefined;
    if (!(await connections.isOfOldEra({ timeoutMs: openMs, signal: ctx.signal }))) return undefined;
    if (peer.answers?.requestState !== undefined)
      throw new RialtoError('invalid_params', {
        message: 'params.requestState belongs to no call that waits for an answer',
      });
    return this.suspended.begin(request, run);
  }

  /**
   * Wraps a peer so that each request of the server to its caller is authorized and audited like a call of its tool of
   * that name.
   */
  decidedPeer(ctx: CallContext, serverId: string, peer: Peer | undefined): Peer | undefined {
    if (!peer) return undefined;
    const budget = { questions: maxQuestions, characters: maxCharacters };
    const ask: Peer['ask'] = (method, params, signal) => {
      if (--budget.questions < 0)
        return Promise.reject(
          new RialtoError('rate_limited', {
            message: `the MCP server may ask its caller at most ${maxQuestions} times in one call`,
          }),
        );
      return this.verbs.around(requestOf(ctx, serverId, method), () => peer.ask(method, params, signal, serverId));
    };
    const tell: Peer['tell'] = (method, params) => {
      budget.characters -= JSON.stringify(params).length;
      if (budget.characters >= 0) peer.tell(method, params, serverId);
    };
    return { ...peer, ask, tell };
  }

  /**
   * Authorizes the questions in a result or a task: each method like a call of its tool of that name. Throws `denied`.
   */
  async decideQuestions(ctx: CallContext, serverId: string, result: JsonObject): Promise<void> {
    for (const method of new Set(questionsOf(result).map(([, question]) => question.method)))
      await this.verbs.around(requestOf(ctx, serverId, method), () => Promise.resolve());
  }
}

function requestOf(ctx: CallContext, serverId: string, method: string): VerbCall {
  const canonical = `${serverId}__${method}`;
  return verbCallOf(ctx, 'mcp_call', 'Tool', { canonical, serverId });
}

function verbCallOf(
  ctx: CallContext,
  action: 'mcp_call' | 'mcp_prompt',
  type: 'Tool' | 'Prompt',
  { canonical, serverId, legacyAlias, calledAs }: CallTarget,
  args?: JsonObject,
): VerbCall {
  const resource = { type, id: canonical, parent: serverId };
  return { ctx, verb: canonical, action, resource, legacyAlias, calledAs, args };
}

/** Converts `denied` into `tool_changed` when only the changed definition of the tool prevents the call. */
function asToolChanged(thrown: unknown, target: UpstreamTool | undefined): unknown {
  if (!(thrown instanceof RialtoError) || thrown.code !== 'denied') return thrown;
  if (!(thrown.data?.policies as string[] | undefined)?.includes(changedToolsWait)) return thrown;
  return toolChanged({ ...thrown.data, ...target?.quarantine }, thrown);
}

/**
 * Checks the parameter headers of the caller, because a proxy may have routed the call by them. Throws
 * `header_mismatch`.
 */
function requireHeaders(peer: Peer | undefined, inHeaders: ReturnType<typeof paramHeadersOf>, args: JsonObject): void {
  const mismatch = peer?.headers && wrongHeader(inHeaders, args, peer.headers);
  if (mismatch)
    throw new RialtoError('header_mismatch', {
      message: `the headers and the body of the request disagree: ${mismatch.header} ${mismatch.problem}`,
      data: { mismatch },
    });
}

function toolChanged(data: JsonObject, cause?: unknown): RialtoError {
  return new RialtoError('tool_changed', {
    message: 'the MCP server changed the definition of this tool, which waits for approval',
    hint: 'GET /api/mcp/tools?quarantined=true shows it; an admin approves it with POST /api/mcp/servers/{id}/approve, and for one user with POST …/{id}/credentials/{credentialId}/approve',
    data,
    cause,
  });
}

function readOf(ctx: CallContext, server: RegisteredServer | undefined, uri: string): VerbCall {
  const resource = { type: 'Resource', id: uri, parent: server?.row.serverId } as const;
  return { ctx, verb: uri, action: 'mcp_read', resource };
}

/** Returns the server, unless its allow list excludes the URI. */
function unlessExcluded(server: RegisteredServer | undefined, uri: string): RegisteredServer | undefined {
  return server && mayRead(server.row, uri) ? server : undefined;
}
