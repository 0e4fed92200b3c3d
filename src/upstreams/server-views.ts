import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { eachInTurns } from '../platform/jobs/in-turns.js';
import { withoutQuery } from '../platform/secrets/url-queries.js';
import type { McpServerEntity } from './storage/mcp-server.entity.js';
import { serverOf } from './storage/registered-server.js';
import { UpstreamStore } from './storage/upstream.store.js';
import type { RegisteredServer } from './registered-server.types.js';
import type { ServerQuery, ServerView } from './upstream.types.js';
import { UpstreamsService } from './upstreams.service.js';

const maxProblems = 200;

/** Shows MCP servers to callers that may discover them. */
@Injectable()
export class ServerViews {
  constructor(
    private readonly store: UpstreamStore,
    private readonly upstreams: UpstreamsService,
    private readonly acts: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /** Lists the servers that the caller may discover, in order of their ids. */
  list(ctx: CallContext, { limit, cursor, status }: ServerQuery): Promise<Page<ServerView>> {
    return this.acts.read(ctx, 'mcp.server.list', async () => {
      const scope = `mcp-servers:${ctx.org.id}:${status ?? ''}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const servers = (await this.upstreams.current(ctx.org.id)).filter(({ row }) => !after || row.serverId > after);
      const shown = await Promise.all(servers.map(({ row }) => this.upstreams.mayDiscover(ctx, row.serverId)));
      const visible = servers.filter((_, index) => shown[index]);
      const views = await eachInTurns(visible, (server) => this.viewServer(ctx, server));
      const wanted = views.filter((view) => status === undefined || view.status === status);
      return pageOf(
        wanted.slice(0, limit + 1),
        limit,
        (view) => view,
        ({ id }) => this.cursors.encode(scope, [id]),
      );
    });
  }

  get(ctx: CallContext, serverId: string): Promise<ServerView> {
    return this.acts.read(ctx, 'mcp.server.get', async () =>
      this.viewOf(ctx, await this.requireVisible(ctx, serverId)),
    );
  }

  /** Returns the row of a server. Throws `not_found` for a server that the caller may not discover. */
  async requireVisible(ctx: CallContext, serverId: string): Promise<McpServerEntity> {
    const row = await this.store.find(ctx.org.id, serverId);
    if (!row || !(await this.upstreams.mayDiscover(ctx, serverId))) throw noSuchServer();
    return row;
  }

  /** Shows a server with what it offers to the caller. */
  viewOf(ctx: CallContext, row: McpServerEntity): Promise<ServerView> {
    return this.viewServer(ctx, serverOf(row));
  }

  private async viewServer(ctx: CallContext, shared: RegisteredServer): Promise<ServerView> {
    const { row } = shared;
    const { connection, server } = await this.upstreams.seen(ctx, shared);
    const { protocolVersion, serverInfo } = server.row.offer;
    const { tools, resources, templates, prompts } = server;
    return {
      id: row.serverId,
      name: row.name,
      transport: row.transport,
      url: row.url && withoutQuery(row.url),
      command: row.program?.command ?? null,
      args: [...(row.program?.args ?? [])],
      cwd: row.program?.cwd ?? null,
      headers: row.headerNames,
      env: row.envNames,
      userCredentials: row.userCredentials,
      userHeaders: row.userHeaders,
      timeoutMs: row.timeoutMs,
      autoReconnect: row.autoReconnect,
      toolAllowList: row.toolAllowList,
      resourceAllowList: row.resourceAllowList,
      roots: row.roots,
      callsPerMinute: row.callsPerMinute,
      toolChanges: row.toolChanges,
      era: row.era,
      source: row.source,
      status: connection?.status ?? 'disconnected',
      error: connection?.error?.message ?? null,
      connectedAt: connection?.connectedAt === undefined ? null : new Date(connection.connectedAt).toISOString(),
      lastPingMs: connection?.lastPingMs ?? null,
      mcpVersion: protocolVersion,
      serverName: textOrEmpty(serverInfo.name),
      serverVersion: textOrEmpty(serverInfo.version),
      tools: tools.map(({ tool, canonical, quarantine }) => ({ name: tool.name, toolName: canonical, quarantine })),
      counts: {
        tools: tools.length,
        resources: resources.length,
        resourceTemplates: templates.length,
        prompts: prompts.length,
      },
      problems: server.problems.slice(0, maxProblems),
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    };
  }
}

export function noSuchServer(): RialtoError {
  return new RialtoError('not_found', { message: 'no such MCP server' });
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
