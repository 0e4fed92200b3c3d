import { Inject, Injectable } from '@nestjs/common';
import { isOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamSubscriptions } from '../../upstreams/upstream-subscriptions.js';
import { ServersInSight } from '../messages/servers-in-sight.js';
import type { AgentSocket } from './agent-socket.js';

/** Notifications between a server and its own client or for the caller of one request: they are not broadcast. */
const notBroadcast = new Set(['message', 'progress', 'cancelled', 'initialized', 'elicitation/complete'].map(noticeOf));

/** Connects the agents on sockets with the MCP servers that they may discover, and passes on what changes there. */
@Injectable()
export class AgentServers {
  private readonly agents = new Set<AgentSocket>();
  /** Updates of the servers of an agent run one after the other. */
  private readonly updates = new WeakMap<AgentSocket, Promise<void>>();

  constructor(
    private readonly servers: ServersInSight,
    private readonly subscriptions: UpstreamSubscriptions,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    subscriptions.onHeard((org, server, method, params, caller) => {
      if (notBroadcast.has(method)) return;
      for (const agent of this.agentsOf(org, caller)) agent.passNotification(server, method, params);
    });
  }

  /** Connects an agent, until `disconnect`. */
  connect(agent: AgentSocket): void {
    this.agents.add(agent);
    void this.alignServers(agent);
  }

  disconnect(agent: AgentSocket): void {
    this.agents.delete(agent);
  }

  /** Watches the changes of a resource for a caller, until the returned function is called. */
  watchResource(ctx: CallContext, server: RegisteredServer, uri: string): Promise<() => void> {
    return this.subscriptions.watchResource(ctx, server, uri);
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
    for (const agent of this.agentsOf(orgId)) void this.alignServers(agent);
  }

  private async pushChanged(agent: AgentSocket, server: string, isMoved = false): Promise<void> {
    const before = agent.servers.get(server);
    // Other listeners of this notice first drop their cached data.
    await new Promise(setImmediate);
    await this.alignServers(agent, isMoved ? server : undefined);
    const { serverId } = agent.servers.get(server) ?? before ?? {};
    if (serverId !== undefined) agent.push({ server_id: serverId, method: noticeOf('servers/changed'), params: {} });
  }

  /**
   * Listens to the servers that the agent may discover, and to no others. Does not keep a program running for that,
   * and holds no connection for an agent without a credential at the server.
   *
   * @param moved server that the agent now uses another connection to.
   */
  private alignServers(agent: AgentSocket, moved?: string): Promise<void> {
    const update = (this.updates.get(agent) ?? Promise.resolve()).then(() => this.alignNow(agent, moved));
    this.updates.set(agent, update);
    return update;
  }

  private async alignNow(agent: AgentSocket, moved?: string): Promise<void> {
    try {
      const visible = new Map((await this.servers.listVisible(agent.ctx)).map((server) => [server.row.id, server]));
      if (!this.agents.has(agent)) return;
      for (const [id, { leave }] of agent.servers) {
        if (visible.has(id) && id !== moved) continue;
        leave?.();
        agent.servers.delete(id);
      }
      for (const [id, server] of visible) {
        const { serverId, transport } = server.row;
        const known = agent.servers.get(id);
        const leave = known?.leave ?? (transport === 'stdio' ? undefined : await this.attendServer(agent, server));
        if (!this.agents.has(agent)) return leave?.();
        agent.servers.set(id, { serverId, leave });
        if (leave) void this.subscriptions.ready(agent.ctx, server).catch(() => undefined);
      }
      await agent.recheck(async ({ row }, uri) => {
        const server = visible.get(row.id);
        return server !== undefined && (await this.subscriptions.mayWatch(agent.ctx, server, uri));
      }, moved);
    } catch (err) {
      this.log.warn({ err }, 'update of the servers of an agent failed');
    }
  }

  private async attendServer({ ctx }: AgentSocket, server: RegisteredServer): Promise<(() => void) | undefined> {
    try {
      return await this.subscriptions.attend(ctx, server);
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
}

function noticeOf(name: string): string {
  return `notifications/${name}`;
}
