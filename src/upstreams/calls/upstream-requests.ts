import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import type { Act, VerbCall } from '../../kernel/verb-bus.js';
import { ToolLimits } from '../../policy/tool-limits.js';
import { headersFor, paramHeadersOf, wrongHeader } from '../../protocol/mcp/param-headers.js';
import { asksFirst } from '../client-requests/client-requests.js';
import type { ServerConnections } from '../connections/server-connections.js';
import { taskIn } from '../connections/task-handle.js';
import type { UpstreamConnection } from '../connections/upstream-connection.js';
import type { CallLimits, CallOptions } from '../connections/upstream-connection.types.js';
import { CallerConnections } from '../credentials/caller-connections.js';
import { asCredentialRefusal } from '../credentials/user-credentials.js';
import type { RegisteredServer } from '../registered-server.types.js';
import { SuspendedCalls, type HeldRequest } from '../suspended-calls/suspended-calls.js';
import { checkedResult, type ResultKind } from '../upstream-result.js';
import { mayAnswerByTask, withTasks, type TaskTaker } from '../upstream-tasks.types.js';
import { UpstreamsService } from '../upstreams.service.js';
import { UpstreamDecisions } from './upstream-decisions.js';

/** Timeout in milliseconds for the opening of a connection to learn the era of its server. */
const openMs = 30_000;

export interface UpstreamRequest {
  /** Absent when no server has the name that the caller used. */
  readonly server: RegisteredServer | undefined;
  readonly kind: ResultKind;
  readonly method: string;
  readonly params: JsonObject;
  readonly tasks?: TaskTaker;
  /** Input schema of the called tool. */
  readonly inputSchema?: Json;
}

/** Sends requests of callers, which were authorized before, to MCP servers. */
@Injectable()
export class UpstreamRequests {
  constructor(
    private readonly connections: CallerConnections,
    private readonly upstreams: UpstreamsService,
    private readonly suspended: SuspendedCalls,
    private readonly limits: ToolLimits,
    private readonly decisions: UpstreamDecisions,
  ) {}

  /** Throws for a request that `sendRequest` refuses in any case. */
  async requireSendable(decided: VerbCall, request: UpstreamRequest): Promise<void> {
    const { server, kind } = request;
    if (!server) throw await this.absent(decided.ctx, decided.resource.parent, kind);
    await this.connections.requireUse(decided.ctx, server.row);
    headersOf(decided, request);
  }

  /** Sends a request and returns its result, or the questions of the server. Throws as UpstreamCalls.callTool does. */
  async sendRequest(decided: Act, request: UpstreamRequest): Promise<JsonObject> {
    const { ctx } = decided;
    const { server, kind, method, params } = request;
    if (!server) throw await this.absent(ctx, decided.resource.parent, kind);
    const { row } = server;
    const asked = { ctx, within: decided };
    const decidedPeer = (peer: Peer | undefined) => this.decisions.decidedPeer(asked, row.serverId, peer);
    const leave = this.limits.countCall(ctx, row.id);
    let isOwn = false;
    try {
      const chosen = await this.connections.chooseConnections(ctx, row);
      const { connections } = chosen;
      ({ isOwn } = chosen);
      const headers = headersOf(decided, request);
      const taker = request.tasks && mayAnswerByTask(server) ? request.tasks : undefined;
      taker?.admit();
      const options: CallOptions = {
        timeoutMs: row.timeoutMs,
        signal: ctx.signal,
        peer: decidedPeer(ctx.peer),
        caller: callerOf(ctx.principal),
        capabilities: taker && withTasks(ctx.peer?.capabilities),
        headers,
        // A person approved the arguments, and not what else the client says about its call.
        meta: decided.decision?.approval ? undefined : ctx.meta,
        opened:
          kind === 'tool'
            ? (connection, limits) =>
                connections.isRead(connection) ? undefined : this.readAgain(decided, connections, connection, limits)
            : undefined,
      };
      const held = ctx.peer?.era === 'modern' ? { ctx, peer: ctx.peer, method, params } : undefined;
      let suspended = held && (await this.suspended.resumeCall(held));
      if (!suspended && kind === 'tool') await this.limits.countToolCall(ctx, decided.verb, row.callsPerMinute);
      suspended ??= held && (await this.suspend(connections, held, options, decidedPeer));
      let answer = suspended;
      if (!answer) {
        const connection = connections.chooseConnection(options);
        answer = await (connection instanceof Promise ? await connection : connection).request(method, params, options);
      }
      const task = taker && taskIn(answer);
      if (task) return await taker.take(task);
      if (!asksFirst(answer)) return await checkedResult(answer, kind);
      if (!suspended) await this.decisions.decideQuestions(asked, row.serverId, answer);
      return answer;
    } catch (thrown) {
      throw isOwn ? asCredentialRefusal(thrown, row) : thrown;
    } finally {
      leave();
    }
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

  /**
   * Reads the offer of a newly connected server, which may have been replaced, and checks that the call is still
   * allowed. Throws as ServerConnections.readOffer does, and `tool_changed`.
   */
  private async readAgain(
    decided: VerbCall,
    connections: ServerConnections,
    connection: UpstreamConnection,
    limits: CallLimits,
  ): Promise<void> {
    await connections.readOffer(connection, limits);
    await this.decisions.requireStillAllowed(decided);
  }

  /**
   * Suspends a call to a server of the 2025 era while a client of the 2026-07-28 revision answers its questions.
   * Returns undefined when the call need not be suspended. Throws `invalid_params` for a request state of an unknown
   * call.
   */
  private async suspend(
    connections: ServerConnections,
    request: HeldRequest,
    options: CallOptions,
    decidedPeer: (peer: Peer) => Peer | undefined,
  ): Promise<JsonObject | undefined> {
    const { peer, ctx, method, params } = request;
    if (Object.keys(peer.capabilities).length === 0) return undefined;
    if (!(await connections.isOfOldEra({ timeoutMs: openMs, signal: ctx.signal }))) return undefined;
    if (peer.answers?.requestState !== undefined)
      throw new RialtoError('invalid_params', {
        message: 'params.requestState belongs to no call that waits for an answer',
      });
    const run = async (asked: Peer, signal: AbortSignal): Promise<JsonObject> => {
      const ownOptions = { ...options, peer: decidedPeer(asked), signal };
      const connection = connections.chooseConnection(ownOptions);
      return (connection instanceof Promise ? await connection : connection).request(method, params, ownOptions);
    };
    return this.suspended.beginCall(request, run);
  }
}

/**
 * Returns the parameter headers of a call. Checks those of the caller, because a proxy may have routed the call by
 * them. Throws `header_mismatch`.
 */
function headersOf({ ctx: { peer }, args = {} }: VerbCall, { inputSchema }: UpstreamRequest): CallOptions['headers'] {
  const inHeaders = paramHeadersOf(inputSchema);
  const mismatch = peer?.headers && wrongHeader(inHeaders, args, peer.headers);
  if (!mismatch) return headersFor(inHeaders, args);
  throw new RialtoError('header_mismatch', {
    message: `the headers and the body of the request disagree: ${mismatch.header} ${mismatch.problem}`,
    data: { mismatch },
  });
}
