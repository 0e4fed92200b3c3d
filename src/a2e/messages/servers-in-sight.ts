import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { A2eRefusal } from '../../protocol/a2e/errors.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { optionalText } from './a2e-call.js';

/** Finds the MCP servers that a caller may discover by the names in messages. */
@Injectable()
export class ServersInSight {
  constructor(private readonly upstreams: UpstreamsService) {}

  /** All servers that the caller may discover, in the order of their ids. */
  async listVisible(ctx: CallContext): Promise<readonly RegisteredServer[]> {
    const servers = await this.listRegistered(ctx);
    const isVisible = await Promise.all(servers.map(({ row }) => this.upstreams.mayDiscover(ctx, row.serverId)));
    return servers.filter((_, index) => isVisible[index]);
  }

  /** All servers of the org, for callers of this method that ask the policy themselves. */
  async listRegistered(ctx: CallContext): Promise<readonly RegisteredServer[]> {
    return (this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx))).servers;
  }

  /** Finds one server. Throws `mcp_server_not_found`. */
  async requireServer(ctx: CallContext, serverId: string): Promise<RegisteredServer> {
    const server = (await this.listRegistered(ctx)).find(({ row }) => row.serverId === serverId);
    if (server && (await this.upstreams.mayDiscover(ctx, serverId))) return server;
    throw new A2eRefusal('mcp_server_not_found', 'no such MCP server');
  }

  /**
   * Finds the server that `server_id` names; undefined without a `server_id`. Throws `mcp_server_not_found`,
   * `mcp_capability_missing` when the server does not have the capability, and `invalid_params`.
   */
  async findNamed(
    ctx: CallContext,
    payload: JsonObject,
    capability: 'tools' | 'resources' | 'prompts',
  ): Promise<RegisteredServer | undefined> {
    const id = optionalText(payload, 'server_id');
    if (id === undefined) return undefined;
    const server = await this.requireServer(ctx, id);
    if (server.row.offer.capabilities[capability]) return server;
    throw new A2eRefusal('mcp_capability_missing', `the MCP server "${id}" has no ${capability}`);
  }
}
