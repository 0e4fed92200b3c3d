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

/** How long messages that are being answered may take while the process stops. */
const drainMs = 25_000;
/** Between a server and its client, or for whoever called it: no news. */
const notForAll = new Set(['message', 'progress', 'cancelled', 'initialized', 'elicitation/complete'].map(noticeOf));

/** The agents that hold a WebSocket to this process: served, told what MCP servers say, and let go when it stops. */
@Injectable()
export class AgentSockets implements BeforeApplicationShutdown {
  private readonly agents = new Set<AgentSocket>();
  /** What each agent hears of is looked up once at a time. */
  private readonly turns = new WeakMap<AgentSocket, Promise<void>>();
  private isLeaving = false;

  constructor(
    private readonly messages: MessageDispatcher,
    private readonly servers: ServersInSight,
    private readonly calls: UpstreamCalls,
    private readonly standing: SseStreams,
    private readonly audit: MessageAudit,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    calls.onHeard((org, server, method, params, caller) => {
      if (!notForAll.has(method)) for (const agent of this.of(org, caller)) agent.hear(server, method, params);
    });
  }

  /** Throws `unavailable` while the process stops. */
  requireOpen(): void {
    if (this.isLeaving) throw new RialtoError('unavailable', { message: 'the gateway is stopping' });
  }

  /** @param admit charges one message, and throws for one too many. */
  open(ctx: CallContext, socket: WebSocket, capabilities: JsonObject, admit: () => void): void {
    const held = new HeldSocket(socket);
    try {
      this.standing.hold(ctx, held, { beats: false });
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

  /** Its tools are others, it is new, or gone: agents hear of it, and look again. */
  @OnNotice('upstream.changed')
  serversChanged({ orgId, serverId }: Notice<'upstream.changed'>): void {
    for (const agent of this.of(orgId)) void this.tellChanged(agent, serverId);
  }

  /** Another line is the agent's now, or none. */
  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, serverId, caller }: Notice<'upstream.credential-changed'>): void {
    for (const agent of this.of(orgId, caller)) void this.tellChanged(agent, serverId, true);
  }

  @OnNotice('upstream.offer-changed')
  offerChanged({ orgId, serverId, caller }: Notice<'upstream.offer-changed'>): void {
    for (const agent of this.of(orgId, caller)) void this.tellChanged(agent, serverId);
  }

  /** Who sees which servers may be another. */
  @OnNotice('policy.changed')
  policyChanged({ orgId }: Notice<'policy.changed'>): void {
    for (const agent of this.of(orgId)) void this.align(agent);
  }

  /** Before the server closes, which waits for every socket. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isLeaving = true;
    const late = new AbortController();
    const patience = new Promise((resolve) => late.signal.addEventListener('abort', resolve));
    const timer = setTimeout(() => late.abort(), drainMs);
    await Promise.all([...this.agents].map((agent) => agent.leave(patience)));
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

  /** Takes an answer to an open question. It is neither counted nor refused, for a call at work waits for it. False for any other message. */
  private settle(agent: AgentSocket, value: unknown): boolean {
    const parsed = readMessage(value);
    if (!parsed.ok || !isAnswer(parsed.message) || !agent.answered(parsed.message)) return false;
    const { spelling: type, id, reqId, ok } = parsed.message;
    const error = ok ? undefined : refusalIn(parsed.message.error);
    const ctx = { ...agent.ctx, requestId: newId() };
    void this.audit.remember(ctx, [{ type, direction: 'in', id, reqId, error }]).catch(this.unrecorded);
    return true;
  }

  private async tellChanged(agent: AgentSocket, server: string, isMoved = false): Promise<void> {
    const before = agent.servers.get(server);
    // Others who are told of the change forget what they knew before.
    await new Promise(setImmediate);
    await this.align(agent, isMoved ? server : undefined);
    const { serverId } = agent.servers.get(server) ?? before ?? {};
    if (serverId !== undefined) agent.push({ server_id: serverId, method: noticeOf('servers/changed'), params: {} });
  }

  /**
   * Hears of the servers that the agent may discover, and of no others; a program is not kept running for that, and nobody listens for an
   * agent that the server does not know. @param moved a server that it hears by another line now.
   */
  private align(agent: AgentSocket, moved?: string): Promise<void> {
    const turn = (this.turns.get(agent) ?? Promise.resolve()).then(() => this.alignNow(agent, moved));
    this.turns.set(agent, turn);
    return turn;
  }

  private async alignNow(agent: AgentSocket, moved?: string): Promise<void> {
    try {
      const seen = new Map((await this.servers.all(agent.ctx)).map((server) => [server.row.id, server]));
      if (!this.agents.has(agent)) return;
      for (const [id, { leave }] of agent.servers) {
        if (seen.has(id) && id !== moved) continue;
        leave?.();
        agent.servers.delete(id);
      }
      for (const [id, server] of seen) {
        const { serverId, transport } = server.row;
        const known = agent.servers.get(id);
        const leave = known?.leave ?? (transport === 'stdio' ? undefined : await this.attend(agent, server));
        if (!this.agents.has(agent)) return leave?.();
        agent.servers.set(id, { serverId, leave });
        if (leave) void this.calls.ready(agent.ctx, server).catch(() => undefined);
      }
      await agent.recheck(async ({ row }, uri) => {
        const server = seen.get(row.id);
        return server !== undefined && (await this.calls.mayWatch(agent.ctx, server, uri));
      }, moved);
    } catch (err) {
      this.log.warn({ err }, 'what an agent hears of could not be looked up');
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

  /** @param caller who alone is meant; absent: everybody. */
  private of(org: string, caller?: string): AgentSocket[] {
    return [...this.agents].filter(({ ctx }) => ctx.org.id === org && isOf(ctx, caller));
  }

  private remember({ ctx }: AgentSocket, type: string, id: string): void {
    void this.audit.remember(ctx, [{ type, direction: 'out', id }]).catch(this.unrecorded);
  }

  private readonly unrecorded = (err: unknown): void => {
    this.log.error({ err }, 'a message could not be recorded');
  };
}

function noticeOf(name: string): string {
  return `notifications/${name}`;
}

/** The code that an agent refuses with. */
function refusalIn({ code }: JsonObject): string {
  return typeof code === 'string' && /^mcp_[a-z_]{1,40}$/.test(code) ? code : 'mcp_sampling_refused';
}

/** What an agent says that it can be asked for: `?capabilities=sampling,roots`, or nothing of it; both where it does not say. */
export function capabilitiesOf(query: URLSearchParams): JsonObject {
  const named = query.get('capabilities')?.split(',');
  const all = { sampling: {}, roots: {} };
  if (!named) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => named.includes(name)));
}
