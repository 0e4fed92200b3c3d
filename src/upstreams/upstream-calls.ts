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

/** How often a server may ask its caller during one call, and how much it may tell, in characters; what is beyond is not handed on. */
const mostQuestions = 100;
const mostTold = 10_485_760;
/** Until a line tells which era its server is of. */
const openMs = 30_000;

/** What is asked for by its canonical name; a name that means nothing is decided all the same, so that a denied one answers alike. */
interface Asked {
  readonly canonical: string;
  readonly serverId: string;
  /** The portable name of a tool. */
  readonly legacyAlias?: string;
  /** The name that its caller used. */
  readonly calledAs?: string;
}

export interface UpstreamCall extends Asked {
  readonly target?: UpstreamTool;
  readonly args: JsonObject;
  /** Takes a task in place of a result; without one the server is not told that it may answer by a task. */
  readonly tasks?: TaskTaker;
}

export interface PromptCall extends Asked {
  readonly target?: UpstreamPrompt;
}

interface Question {
  readonly server: RegisteredServer;
  readonly lines: ServerConnections;
  readonly kind: ResultKind;
  readonly method: string;
  readonly params: JsonObject;
  readonly tasks?: TaskTaker;
  /** Of the tool that is called. */
  readonly inputSchema?: Json;
}

/** Tools, resources, prompts and completions of MCP servers: decided first, then answered as their server answers. */
@Injectable()
export class UpstreamCalls {
  constructor(
    private readonly lines: CallerConnections,
    private readonly pool: UpstreamPool,
    private readonly upstreams: UpstreamsService,
    private readonly verbs: VerbBus,
    private readonly held: SuspendedCalls,
    private readonly limits: ToolLimits,
  ) {}

  /**
   * Throws `denied`, `tool_changed`, `not_found` for a name that means nothing, `credential_required` and `credential_refused` where a
   * server knows each of its callers, `header_mismatch`, and what UpstreamConnection.request throws.
   */
  async call(ctx: CallContext, { target, args, tasks, ...asked }: UpstreamCall): Promise<JsonObject> {
    const decided = decidedOn(ctx, 'mcp_call', 'Tool', asked, args);
    const params = { name: target?.tool.name ?? '', arguments: args };
    try {
      const more = { tasks, inputSchema: target?.tool.inputSchema };
      return await this.ask(decided, target?.server, 'tool', 'tools/call', params, more);
    } catch (error) {
      throw asHeldBack(error, target);
    }
  }

  /**
   * Whether a call that was begun may still be its caller's; neither recorded nor told. That its tool changed since does not end it: it was made
   * by the definition that was approved.
   */
  async mayStillCall(ctx: CallContext, { args, ...asked }: UpstreamCall): Promise<boolean> {
    const { allowed, policies } = await this.verbs.ask(decidedOn(ctx, 'mcp_call', 'Tool', asked, args));
    return allowed || policies.includes(changedToolsWait);
  }

  /** Asks whoever among `servers` has it, as far as anyone can tell. Throws as `call` does. */
  read(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<JsonObject> {
    const server = ownerOfUri(servers, uri);
    return this.ask(reading(ctx, server, uri), allowing(server, uri), 'resource', 'resources/read', { uri });
  }

  /**
   * Who tells of the changes of a resource: decided as a reading of it. Throws `denied`, `not_found`, and `unprocessable` for a server that
   * cannot.
   */
  watched(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<RegisteredServer> {
    const owner = ownerOfUri(servers, uri);
    return this.verbs.around(reading(ctx, owner, uri), () => {
      const server = allowing(owner, uri);
      if (!server) return Promise.reject(new RialtoError('not_found', { message: 'no such resource' }));
      const { resources } = server.row.offer.capabilities;
      if (isJsonObject(resources) && resources.subscribe === true) return Promise.resolve(server);
      const message = `the MCP server "${server.row.serverId}" does not tell of changes of its resources`;
      return Promise.reject(new RialtoError('unprocessable', { message }));
    });
  }

  /** Whether `watched` would still name this server; neither recorded nor told. */
  async mayWatch(ctx: CallContext, server: RegisteredServer, uri: string): Promise<boolean> {
    if (!allowing(server, uri) || !(await this.lines.mayUse(ctx, server.row))) return false;
    return this.verbs.permits(reading(ctx, server, uri));
  }

  /** Hears of the changes of a resource of a server that `watched` named, until what it returns is called. Throws as `call` does. */
  watch(ctx: CallContext, { row }: RegisteredServer, uri: string): Promise<() => void> {
    return this.lines.watch(ctx, row, uri);
  }

  /** @param tell is told of each change of a watched resource, and whose it is alone: absent, of all. */
  onUpdated(tell: (orgId: string, serverId: string, uri: string, caller?: string) => void): void {
    this.pool.onUpdated(({ orgId, serverId }, uri, caller) => tell(orgId, serverId, uri, caller));
  }

  /** @param tell is told of whatever servers say to all, or to one caller alone, by the id of their row. */
  onHeard(tell: (orgId: string, server: string, method: string, params: JsonObject, caller?: string) => void): void {
    this.pool.onHeard(({ orgId, id }, method, params, caller) => tell(orgId, id, method, params, caller));
  }

  /**
   * Lets the line that hears what a server says be idle, once `ready` opened it, until what it returns is called. Throws
   * `credential_required`.
   */
  attend(ctx: CallContext, { row }: RegisteredServer): Promise<() => void> {
    return this.lines.attend(ctx, row);
  }

  /** Opens the caller's line to a server, unless it is open. Throws as `call` does. */
  ready(ctx: CallContext, { row }: RegisteredServer): Promise<void> {
    const { timeoutMs } = row;
    return this.lines.use(ctx, row, ({ shared: main }) => main.ready({ timeoutMs, signal: ctx.signal }));
  }

  /** Says something to a server, decided as a call of its tool of that name; no answer is waited for. Throws as `call` does. */
  notify(ctx: CallContext, { row }: RegisteredServer, method: string, params: JsonObject): Promise<void> {
    const { timeoutMs, serverId } = row;
    const { peer, signal } = ctx;
    return this.verbs.around(asking(ctx, serverId, method), () =>
      this.lines.use(ctx, row, (lines) => lines.notify(method, params, { timeoutMs, peer, signal })),
    );
  }

  /** Tells servers, on the lines that they have here for the calls of one client. @param key of that client, as Peer has it. */
  rootsChanged(orgId: string, key: string): void {
    this.pool.rootsChanged(orgId, key);
  }

  /** Throws as `call` does. */
  prompt(ctx: CallContext, { target, ...asked }: PromptCall, args: JsonObject | undefined): Promise<JsonObject> {
    const decided = decidedOn(ctx, 'mcp_prompt', 'Prompt', asked, args);
    const params = { name: target?.prompt.name ?? '', ...(args && { arguments: args }) };
    return this.ask(decided, target?.server, 'prompt', 'prompts/get', params);
  }

  /** An argument of a prompt: `params` are the protocol's, but for the name. Throws as `call` does. */
  completePrompt(ctx: CallContext, { target, ...asked }: PromptCall, params: JsonObject): Promise<JsonObject> {
    const ref = { type: 'ref/prompt', name: target?.prompt.name ?? '' };
    const decided = decidedOn(ctx, 'mcp_prompt', 'Prompt', asked);
    return this.ask(decided, target?.server, 'completion', 'completion/complete', { ...params, ref });
  }

  /** A part of a resource template. Throws as `call` does. */
  completeUri(
    ctx: CallContext,
    servers: readonly RegisteredServer[],
    uri: string,
    params: JsonObject,
  ): Promise<JsonObject> {
    const server = ownerOfUri(servers, uri);
    const decided = reading(ctx, server, uri);
    const ref = { type: 'ref/resource', uri };
    return this.ask(decided, allowing(server, uri), 'completion', 'completion/complete', { ...params, ref });
  }

  private ask(
    decided: VerbCall,
    server: RegisteredServer | undefined,
    kind: ResultKind,
    method: string,
    params: JsonObject,
    more: Pick<Question, 'tasks' | 'inputSchema'> = {},
  ): Promise<JsonObject> {
    const { ctx, resource } = decided;
    return this.verbs.around(decided, async () => {
      if (!server) throw await this.absent(ctx, resource.parent, kind);
      return this.limits.around(ctx, server.row.id, () =>
        this.lines.use(ctx, server.row, (lines) =>
          this.asked(decided, { ...more, server, lines, kind, method, params }),
        ),
      );
    });
  }

  /** What is nothing to most may be something to those whom its server knows. Throws `credential_required` for a caller it does not. */
  private async absent(ctx: CallContext, serverId: string | undefined, kind: ResultKind): Promise<RialtoError> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const server = servers.find(({ row }) => row.serverId === serverId);
    if (server) await this.lines.requireUse(ctx, server.row);
    return new RialtoError('not_found', { message: `no such ${kind}` });
  }

  private async asked(
    decided: VerbCall,
    { server, lines, kind, method, params, tasks, inputSchema }: Question,
  ): Promise<JsonObject> {
    const { ctx, args = {} } = decided;
    const { serverId, timeoutMs } = server.row;
    const inHeaders = paramHeadersOf(inputSchema);
    requireHeaders(ctx.peer, inHeaders, args);
    const headers = headersFor(inHeaders, args);
    const taker = tasks && mayAnswerByTask(server) ? tasks : undefined;
    taker?.admit();
    const capabilities = taker && withTasks(ctx.peer?.capabilities);
    const stillMay = kind === 'tool' ? () => this.requireStill(decided) : undefined;
    const run = (peer: Peer | undefined, signal: AbortSignal | undefined): Promise<JsonObject> => {
      const whose = { peer: this.decidedPeer(ctx, serverId, peer), caller: callerOf(ctx.principal) };
      const { meta } = ctx;
      return lines.request(method, params, { timeoutMs, signal, ...whose, capabilities, headers, meta, stillMay });
    };
    const request = ctx.peer?.era === 'modern' ? { ctx, peer: ctx.peer, method, params } : undefined;
    let held = request && (await this.held.resume(request));
    if (!held && kind === 'tool') await this.limits.admit(ctx, decided.verb, server.row.callsPerMinute);
    held ??= request && (await this.hold(lines, request, run));
    const answer = held ?? (await run(ctx.peer, ctx.signal));
    const task = taker && taskIn(answer);
    if (task) return taker.take(task);
    if (!asksFirst(answer)) return resultOf(answer, kind);
    if (!held) await this.decideQuestions(ctx, serverId, answer);
    return answer;
  }

  /** Throws `tool_changed` when what was decided on is something else by now. */
  private async requireStill(decided: VerbCall): Promise<void> {
    if (!(await this.verbs.permits(decided))) throw heldBack({ verb: decided.verb });
  }

  /** A call whose server may ask what its caller can only be asked by a result; undefined where that is not so. Throws `invalid_params` for a state of no call. */
  private async hold(
    lines: ServerConnections,
    request: HeldRequest,
    run: (peer: Peer, signal: AbortSignal) => Promise<JsonObject>,
  ): Promise<JsonObject | undefined> {
    const { peer, ctx } = request;
    if (Object.keys(peer.capabilities).length === 0) return undefined;
    if (!(await lines.isOfOldEra({ timeoutMs: openMs, signal: ctx.signal }))) return undefined;
    if (peer.answers?.requestState !== undefined)
      throw new RialtoError('invalid_params', {
        message: 'params.requestState is of no call that waits for an answer',
      });
    return this.held.begin(request, run);
  }

  /** What the server asks of its caller is decided as a call of its tool of that name, and remembered like one. */
  decidedPeer(ctx: CallContext, serverId: string, peer: Peer | undefined): Peer | undefined {
    if (!peer) return undefined;
    const left = { questions: mostQuestions, told: mostTold };
    const ask: Peer['ask'] = (method, params, signal) => {
      if (--left.questions < 0)
        return Promise.reject(new RialtoError('rate_limited', { message: `a call may ask ${mostQuestions} times` }));
      return this.verbs.around(asking(ctx, serverId, method), () => peer.ask(method, params, signal, serverId));
    };
    const tell: Peer['tell'] = (method, params) => {
      left.told -= JSON.stringify(params).length;
      if (left.told >= 0) peer.tell(method, params, serverId);
    };
    return { ...peer, ask, tell };
  }

  /** What a server asks its caller by a result, or by a task: each method as a call of its tool of that name. Throws `denied`. */
  async decideQuestions(ctx: CallContext, serverId: string, result: JsonObject): Promise<void> {
    for (const method of new Set(questionsOf(result).map(([, question]) => question.method)))
      await this.verbs.around(asking(ctx, serverId, method), () => Promise.resolve());
  }
}

function asking(ctx: CallContext, serverId: string, method: string): VerbCall {
  const canonical = `${serverId}__${method}`;
  return decidedOn(ctx, 'mcp_call', 'Tool', { canonical, serverId });
}

function decidedOn(
  ctx: CallContext,
  action: 'mcp_call' | 'mcp_prompt',
  type: 'Tool' | 'Prompt',
  { canonical, serverId, legacyAlias, calledAs }: Asked,
  args?: JsonObject,
): VerbCall {
  const resource = { type, id: canonical, parent: serverId };
  return { ctx, verb: canonical, action, resource, legacyAlias, calledAs, args };
}

/** A call that nothing but the changed definition of its tool stands against has a meaning of its own. */
function asHeldBack(thrown: unknown, target: UpstreamTool | undefined): unknown {
  if (!(thrown instanceof RialtoError) || thrown.code !== 'denied') return thrown;
  if (!(thrown.data?.policies as string[] | undefined)?.includes(changedToolsWait)) return thrown;
  return heldBack({ ...thrown.data, ...target?.quarantine }, thrown);
}

/** Who routed the call by its headers must not have been told something else than the server is. Throws `header_mismatch`. */
function requireHeaders(peer: Peer | undefined, inHeaders: ReturnType<typeof paramHeadersOf>, args: JsonObject): void {
  const wrong = peer?.headers && wrongHeader(inHeaders, args, peer.headers);
  if (wrong)
    throw new RialtoError('header_mismatch', {
      message: `the headers and the body of the request disagree: ${wrong.header} ${wrong.problem}`,
      data: { mismatch: wrong },
    });
}

function heldBack(data: JsonObject, cause?: unknown): RialtoError {
  return new RialtoError('tool_changed', {
    message: 'the MCP server changed the definition of this tool, which waits for approval',
    hint: 'GET /api/mcp/tools?quarantined=true shows it; an admin approves it with POST /api/mcp/servers/{id}/approve, and for one user with POST …/{id}/credentials/{credentialId}/approve',
    data,
    cause,
  });
}

function reading(ctx: CallContext, server: RegisteredServer | undefined, uri: string): VerbCall {
  const resource = { type: 'Resource', id: uri, parent: server?.row.serverId } as const;
  return { ctx, verb: uri, action: 'mcp_read', resource };
}

/** The server, unless its allow list keeps the URI back. */
function allowing(server: RegisteredServer | undefined, uri: string): RegisteredServer | undefined {
  return server && mayRead(server.row, uri) ? server : undefined;
}
