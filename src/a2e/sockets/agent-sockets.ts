import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import type { WebSocket } from 'ws';
import { isOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { HeldSocket } from '../../platform/http/streams/held-socket.js';
import { SseStreams } from '../../platform/http/streams/sse-streams.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { isAnswer, readMessage } from '../../protocol/a2e/messages.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamCalls } from '../../upstreams/upstream-calls.js';
import { AgentSocket } from './agent-socket.js';
import { MessageAudit } from '../messages/message-audit.js';
import { MessageDispatcher } from '../messages/message-dispatcher.js';
import { ServersInSight } from '../messages/servers-in-sight.js';

/** How long running messages may take while the process stops, in milliseconds. */
const drainMs = 25_000;
/** Notifications between a server and its own client or for the caller of one request: they are not broadcast. */
const notBroadcast = new Set(['message', 'progress', 'cancelled', 'initialized', 'elicitation/complete'].map(noticeOf));

/**
 * Agents with a WebSocket to this process: handles their messages, passes on notifications of MCP servers, and closes
 * the sockets when the process stops.
 */
@Injectable()
export class AgentSockets implements BeforeApplicationShutdown {
  private readonly agents = new Set<AgentSocket>();
  /** Updates of the servers of an agent run one after the other. */
  private readonly updates = new WeakMap<AgentSocket, Promise<void>>();
  private isLeaving = false;

  constructor(
    private readonly messages: MessageDispatcher,
    private readonly servers: ServersInSight,
    private readonly calls: UpstreamCalls,
    private readonly streams: SseStreams,
    private readonly audit: MessageAudit,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    calls.onHeard((org, server, method, params, caller) => {
      if (!notBroadcast.has(method)) for (const agent of this.agentsOf(org, caller)) agent.hear(server, method, params);
    });
  }

  /** Throws `unavailable` while the process stops. */
  requireOpen(): void {
    if (this.isLeaving) throw new RialtoError('unavailable', { message: 'the gateway is stopping' });
  }

  /**
   * Opens the socket of an agent.
   *
   * @param admit counts one message against the limits, and throws when a limit is exceeded.
   */
  open(ctx: CallContext, socket: WebSocket, capabilities: JsonObject, admit: () => void): void {
    const held = new HeldSocket(socket);
    try {
      this.streams.hold(ctx, held, { beats: false });
    } catch (thrown) {
      return void held.close(1_013, RialtoError.from(thrown).message);
    }
    const agent = new AgentSocket(ctx, held, capabilities, {
      sent: ({ type, id }) => this.remember(agent, type, id),
      watch: (server, uri) => this.calls.watch(ctx, server, uri),
    });
    this.agents.add(agent);
    held.once('close', () => this.agents.delete(agent));
    socket.on('message', (data: Buffer, isBinary: boolean) => this.take(agent, isBinary ? undefined : data, admit));
    void this.align(agent);
  }

  /** Pushes a change of a server or its tools to the agents, and updates their servers. */
  @OnNotice('upstream.changed')
  serversChanged({ orgId, serverId }: Notice<'upstream.changed'>): void {
    for (const agent of this.agentsOf(orgId)) void this.pushChanged(agent, serverId);
  }

  /**
   * Updates the agents of a caller with new or removed credentials: they use another connection to the server, or
   * none.
   */
  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    for (const agent of this.agentsOf(orgId, caller)) void this.pushChanged(agent, serverId, true);
  }

  @OnNotice('upstream.offer-changed')
  offerChanged({ orgId, serverId, caller }: Notice<'upstream.offer-changed'>): void {
    for (const agent of this.agentsOf(orgId, caller)) void this.pushChanged(agent, serverId);
  }

  /** Updates all agents: they may see other servers under the new policies. */
  @OnNotice('policy.changed')
  policyChanged({ orgId }: Notice<'policy.changed'>): void {
    for (const agent of this.agentsOf(orgId)) void this.align(agent);
  }

  /** Closes all sockets before the HTTP server closes, because that waits for each socket. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isLeaving = true;
    const drain = new AbortController();
    const timeout = new Promise((resolve) => drain.signal.addEventListener('abort', resolve));
    const timer = setTimeout(() => drain.abort(), drainMs);
    await Promise.all([...this.agents].map((agent) => agent.leave(timeout)));
    clearTimeout(timer);
  }

  private take(agent: AgentSocket, data: Buffer | undefined, admit: () => void): void {
    const parsed = data && parseJson(data.toString('utf8'));
    const value: unknown = parsed?.ok ? parsed.value : undefined;
    if (this.settle(agent, value)) return;
    try {
      this.requireOpen();
      admit();
      agent.take(async (ctx) => agent.reply(await this.messages.answer(ctx, value, agent)));
    } catch (thrown) {
      agent.reply(this.messages.turnAway(value, RialtoError.from(thrown)));
    }
  }

  /**
   * Takes an answer to an open question. It is not counted and not refused, because a running call waits for it.
   * False for any other message.
   */
  private settle(agent: AgentSocket, value: unknown): boolean {
    const parsed = readMessage(value);
    if (!parsed.ok || !isAnswer(parsed.message) || !agent.answered(parsed.message)) return false;
    const { spelling: type, id, reqId, ok } = parsed.message;
    const error = ok ? undefined : refusalIn(parsed.message.error);
    const ctx = { ...agent.ctx, requestId: newId() };
    void this.audit.remember(ctx, [{ type, direction: 'in', id, reqId, error }]).catch(this.unrecorded);
    return true;
  }

  private async pushChanged(agent: AgentSocket, server: string, isMoved = false): Promise<void> {
    const before = agent.servers.get(server);
    // Other listeners of this notice first drop their cached data.
    await new Promise(setImmediate);
    await this.align(agent, isMoved ? server : undefined);
    const { serverId } = agent.servers.get(server) ?? before ?? {};
    if (serverId !== undefined) agent.push({ server_id: serverId, method: noticeOf('servers/changed'), params: {} });
  }

  /**
   * Listens to the servers that the agent may discover, and to no others. Does not keep a program running for that,
   * and holds no connection for an agent without a credential at the server.
   *
   * @param moved server that the agent now uses another connection to.
   */
  private align(agent: AgentSocket, moved?: string): Promise<void> {
    const update = (this.updates.get(agent) ?? Promise.resolve()).then(() => this.alignNow(agent, moved));
    this.updates.set(agent, update);
    return update;
  }

  private async alignNow(agent: AgentSocket, moved?: string): Promise<void> {
    try {
      const visible = new Map((await this.servers.all(agent.ctx)).map((server) => [server.row.id, server]));
      if (!this.agents.has(agent)) return;
      for (const [id, { leave }] of agent.servers) {
        if (visible.has(id) && id !== moved) continue;
        leave?.();
        agent.servers.delete(id);
      }
      for (const [id, server] of visible) {
        const { serverId, transport } = server.row;
        const known = agent.servers.get(id);
        const leave = known?.leave ?? (transport === 'stdio' ? undefined : await this.attend(agent, server));
        if (!this.agents.has(agent)) return leave?.();
        agent.servers.set(id, { serverId, leave });
        if (leave) void this.calls.ready(agent.ctx, server).catch(() => undefined);
      }
      await agent.recheck(async ({ row }, uri) => {
        const server = visible.get(row.id);
        return server !== undefined && (await this.calls.mayWatch(agent.ctx, server, uri));
      }, moved);
    } catch (err) {
      this.log.warn({ err }, 'update of the servers of an agent failed');
    }
  }

  private async attend({ ctx }: AgentSocket, server: RegisteredServer): Promise<(() => void) | undefined> {
    try {
      return await this.calls.attend(ctx, server);
    } catch (thrown) {
      if (RialtoError.from(thrown).code === 'credential_required') return undefined;
      throw thrown;
    }
  }

  /**
   * Agents of an org.
   *
   * @param caller only agents of this caller; absent for all.
   */
  private agentsOf(org: string, caller?: string): AgentSocket[] {
    return [...this.agents].filter(({ ctx }) => ctx.org.id === org && isOf(ctx, caller));
  }

  private remember({ ctx }: AgentSocket, type: string, id: string): void {
    void this.audit.remember(ctx, [{ type, direction: 'out', id }]).catch(this.unrecorded);
  }

  private readonly unrecorded = (err: unknown): void => {
    this.log.error({ err }, 'audit of a message failed');
  };
}

function noticeOf(name: string): string {
  return `notifications/${name}`;
}

/** Error code in the refusal of an agent. */
function refusalIn({ code }: JsonObject): string {
  return typeof code === 'string' && /^mcp_[a-z_]{1,40}$/.test(code) ? code : 'mcp_sampling_refused';
}

/**
 * Capabilities that an agent declares with `?capabilities=sampling,roots`, which may be empty; without the parameter
 * both.
 */
export function capabilitiesOf(query: URLSearchParams): JsonObject {
  const named = query.get('capabilities')?.split(',');
  const all = { sampling: {}, roots: {} };
  if (!named) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => named.includes(name)));
}
