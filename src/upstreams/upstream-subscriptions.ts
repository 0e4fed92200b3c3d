import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import type { Notice } from '../kernel/notices.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { messageAct, readAct } from './calls/upstream-acts.js';
import { UpstreamPool } from './connections/upstream-pool.js';
import { CallerConnections } from './credentials/caller-connections.js';
import type { RegisteredServer } from './registered-server.types.js';
import { ownerOfUri, unlessExcluded } from './storage/registered-server.js';

/** Subscribes callers to changes and notifications of MCP servers, and sends notifications to the servers. */
@Injectable()
export class UpstreamSubscriptions {
  constructor(
    private readonly connections: CallerConnections,
    private readonly pool: UpstreamPool,
    private readonly verbs: VerbBus,
  ) {}

  /**
   * Returns the server that reports changes of a resource. Authorized like a read of it. Throws `denied`, `not_found`,
   * and `unprocessable` for a server that cannot report changes.
   */
  findWatchable(ctx: CallContext, servers: readonly RegisteredServer[], uri: string): Promise<RegisteredServer> {
    const owner = ownerOfUri(servers, uri);
    return this.verbs.around(readAct(ctx, owner, uri), () => {
      const server = unlessExcluded(owner, uri);
      if (!server) return Promise.reject(new RialtoError('not_found', { message: 'no such resource' }));
      const { resources } = server.row.offer.capabilities;
      if (isJsonObject(resources) && resources.subscribe === true) return Promise.resolve(server);
      const message = `the MCP server "${server.row.serverId}" does not report changes of its resources`;
      return Promise.reject(new RialtoError('unprocessable', { message }));
    });
  }

  /** Returns whether `findWatchable` would still return this server; neither audited nor announced. */
  async mayWatch(ctx: CallContext, server: RegisteredServer, uri: string): Promise<boolean> {
    if (!unlessExcluded(server, uri) || !(await this.connections.mayUse(ctx, server.row))) return false;
    return this.verbs.permits(readAct(ctx, server, uri));
  }

  /**
   * Subscribes to changes of a resource at a server that `findWatchable` returned, until the returned function is
   * called. Throws as UpstreamCalls.callTool does.
   */
  watchResource(ctx: CallContext, { row }: RegisteredServer, uri: string): Promise<() => void> {
    return this.connections.watchResource(ctx, row, uri);
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

  /** Opens the caller's connection to a server, unless it is open. Throws as UpstreamCalls.callTool does. */
  ready(ctx: CallContext, { row }: RegisteredServer): Promise<void> {
    const { timeoutMs } = row;
    return this.connections.use(ctx, row, ({ shared }) => shared.ready({ timeoutMs, signal: ctx.signal }));
  }

  /**
   * Sends a notification to a server, authorized like a call of its tool of that name. Throws as
   * UpstreamCalls.callTool does.
   */
  notifyServer(ctx: CallContext, { row }: RegisteredServer, method: string, params: JsonObject): Promise<void> {
    const { timeoutMs, serverId } = row;
    const { peer, signal } = ctx;
    return this.verbs.around(messageAct(ctx, serverId, method), () =>
      this.connections.use(ctx, row, (connections) =>
        connections.notifyServer(method, params, { timeoutMs, peer, signal }),
      ),
    );
  }

  /** Notifies servers that the roots of a client changed, on the connections that this process has for that client. */
  @OnNotice('mcp.roots-changed')
  rootsChanged({ orgId, sessionId }: Notice<'mcp.roots-changed'>): void {
    this.pool.rootsChanged(orgId, sessionId);
  }
}
