import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { A2eRefusal } from '../../protocol/a2e/errors.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { optionalText } from './a2e-call.js';

/** The MCP servers that a caller may discover, as messages name them. */
@Injectable()
export class ServersInSight {
  constructor(private readonly upstreams: UpstreamsService) {}

  /** In order of their ids. */
  async all(ctx: CallContext): Promise<readonly RegisteredServer[]> {
    const servers = await this.known(ctx);
    const shown = await Promise.all(servers.map(({ row }) => this.upstreams.mayDiscover(ctx, row.serverId)));
    return servers.filter((_, index) => shown[index]);
  }

  /** Of the whole org: for what is decided by itself. */
  async known(ctx: CallContext): Promise<readonly RegisteredServer[]> {
    return (this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx))).servers;
  }

  /** Throws `mcp_server_not_found`. */
  async one(ctx: CallContext, serverId: string): Promise<RegisteredServer> {
    const server = (await this.known(ctx)).find(({ row }) => row.serverId === serverId);
    if (server && (await this.upstreams.mayDiscover(ctx, serverId))) return server;
    throw new A2eRefusal('mcp_server_not_found', 'no such MCP server');
  }

  /**
   * The one that `server_id` names; undefined when there is none. Throws `mcp_server_not_found`, `mcp_capability_missing` for one that
   * has nothing of that kind, and `invalid_params`.
   */
  async named(
    ctx: CallContext,
    payload: JsonObject,
    capability: 'tools' | 'resources' | 'prompts',
  ): Promise<RegisteredServer | undefined> {
    const id = optionalText(payload, 'server_id');
    if (id === undefined) return undefined;
    const server = await this.one(ctx, id);
    if (server.row.offer.capabilities[capability]) return server;
    throw new A2eRefusal('mcp_capability_missing', `the MCP server "${id}" has no ${capability}`);
  }
}
