import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import type { Peer } from '../kernel/peer.js';
import { VerbBus, type VerbCall } from '../kernel/verb-bus.js';
import { HeldCalls, type HeldRequest } from './held-calls.service.js';
import { ToolLimits } from '../policy/tool-limits.service.js';
import { asksFirst, questionsOf } from './peer-talk.js';
import { mayRead, ownerOfUri } from './registered-server.js';
import type { RegisteredServer, UpstreamPrompt, UpstreamTool } from './registered-server.types.js';
import type { ServerLines } from './server-lines.js';
import { UpstreamPool } from './upstream-pool.js';
import { resultOf, type ResultKind } from './upstream-result.js';

/** How often a server may ask its caller during one call, and how much it may tell, in characters; what is beyond is not handed on. */
const mostQuestions = 100;
const mostTold = 10_485_760;
/** Until a line tells which era its server is of. */
const openMs = 30_000;

/** What is asked for by its canonical name; a name that means nothing is decided all the same, so that a denied one answers alike. */
interface Asked {
  readonly canonical: string;
  readonly serverId: string;
  /** The name that its caller used, where that is another. */
  readonly legacyAlias?: string;
}

export interface UpstreamCall extends Asked {
  readonly target?: UpstreamTool;
  readonly args: JsonObject;
}

export interface PromptCall extends Asked {
  readonly target?: UpstreamPrompt;
}

/** Tools, resources, prompts and completions of MCP servers: decided first, then answered as their server answers. */
@Injectable()
export class UpstreamCalls {
  constructor(
    private readonly pool: UpstreamPool,
    private readonly verbs: VerbBus,
    private readonly held: HeldCalls,
    private readonly limits: ToolLimits,
  ) {}

  /** Throws `denied`, `not_found` for a name that means nothing, and what UpstreamConnection.request throws. */
  call(ctx: CallContext, { target, args, ...asked }: UpstreamCall): Promise<JsonObject> {
    const decided = decidedOn(ctx, 'mcp_call', 'Tool', asked, args);
    const params = { name: target?.tool.name ?? '', arguments: args };
    return this.ask(decided, target?.server, 'tool', 'tools/call', params);
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
  mayWatch(ctx: CallContext, server: RegisteredServer, uri: string): Promise<boolean> {
    return allowing(server, uri) ? this.verbs.permits(reading(ctx, server, uri)) : Promise.resolve(false);
  }

  /** Hears of the changes of a resource of a server that `watched` named, until what it returns is called. */
  watch({ row }: RegisteredServer, uri: string): () => void {
    return this.pool.watch(row, uri);
  }

  /** @param tell is told of each change of a watched resource. */
  onUpdated(tell: (orgId: string, serverId: string, uri: string) => void): void {
    this.pool.onUpdated(({ orgId, serverId }, uri) => tell(orgId, serverId, uri));
  }

  /** @param tell is told of whatever servers say on the lines of all, by the id of their row. */
  onHeard(tell: (orgId: string, server: string, method: string, params: JsonObject) => void): void {
    this.pool.onHeard(({ orgId, id }, method, params) => tell(orgId, id, method, params));
  }

  /** Lets the line that hears what a server says be idle, once `ready` opened it, until what it returns is called. */
  attend({ row }: RegisteredServer): () => void {
    return this.pool.attend(row);
  }

  /** Opens the line to a server, unless it is open. Throws as `call` does. */
  ready({ row }: RegisteredServer, signal?: AbortSignal): Promise<void> {
    return this.pool.to(row).main.ready({ timeoutMs: row.timeoutMs, signal });
  }

  /** Says something to a server, decided as a call of its tool of that name; no answer is waited for. Throws as `call` does. */
  notify(ctx: CallContext, { row }: RegisteredServer, method: string, params: JsonObject): Promise<void> {
    const { timeoutMs, serverId } = row;
    const { peer, signal } = ctx;
    return this.verbs.around(asking(ctx, serverId, method), () =>
      this.pool.to(row).notify(method, params, { timeoutMs, peer, signal }),
    );
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
  ): Promise<JsonObject> {
    return this.verbs.around(decided, async () => {
      if (!server) throw new RialtoError('not_found', { message: `no such ${kind}` });
      const { ctx } = decided;
      const { serverId, timeoutMs } = server.row;
      const lines = this.pool.to(server.row);
      const run = (peer: Peer | undefined, signal: AbortSignal | undefined): Promise<JsonObject> =>
        lines.request(method, params, { timeoutMs, signal, peer: this.decidedPeer(ctx, serverId, peer) });
      const request = ctx.peer?.era === 'modern' ? { ctx, peer: ctx.peer, method, params } : undefined;
      let held = request && (await this.held.resume(request));
      if (!held && kind === 'tool') await this.limits.admit(ctx, decided.verb, server.row.callsPerMinute);
      held ??= request && (await this.hold(lines, request, run));
      const answer = held ?? (await run(ctx.peer, ctx.signal));
      if (!asksFirst(answer)) return resultOf(answer, kind);
      if (!held) await this.decideQuestions(ctx, serverId, answer);
      return answer;
    });
  }

  /** A call whose server may ask what its caller can only be asked by a result; undefined where that is not so. Throws `invalid_params` for a state of no call. */
  private async hold(
    lines: ServerLines,
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
  private decidedPeer(ctx: CallContext, serverId: string, peer: Peer | undefined): Peer | undefined {
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

  private async decideQuestions(ctx: CallContext, serverId: string, result: JsonObject): Promise<void> {
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
  { canonical, serverId, legacyAlias }: Asked,
  args?: JsonObject,
): VerbCall {
  return { ctx, verb: canonical, action, resource: { type, id: canonical, parent: serverId }, legacyAlias, args };
}

function reading(ctx: CallContext, server: RegisteredServer | undefined, uri: string): VerbCall {
  const resource = { type: 'Resource', id: uri, parent: server?.row.serverId } as const;
  return { ctx, verb: uri, action: 'mcp_read', resource };
}

/** The server, unless its allow list keeps the URI back. */
function allowing(server: RegisteredServer | undefined, uri: string): RegisteredServer | undefined {
  return server && mayRead(server.row, uri) ? server : undefined;
}
