import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { endpointChanged, endpointFrom, UpstreamPlaces, type Endpoint } from './upstream-places.js';
import { serverOf } from './registered-server.js';
import { columnsOf } from './server-columns.js';
import { UpstreamPool } from './upstream-pool.js';
import { UpstreamStore } from './upstream.store.js';
import type { ChangeServer, Offer, RegisterServer, ServerQuery, ServerView } from './upstream.types.js';
import { UpstreamsService } from './upstreams.service.js';

/** Administration of MCP servers. */
@Injectable()
export class UpstreamAdmin {
  constructor(
    private readonly store: UpstreamStore,
    private readonly places: UpstreamPlaces,
    private readonly upstreams: UpstreamsService,
    private readonly pool: UpstreamPool,
    private readonly acts: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Connects first, so that a server that cannot be used is none (AE-47). Throws `url_not_allowed`, `slug_taken`, `unprocessable`
   * (too many), and what UpstreamConnection.request throws.
   */
  async register(ctx: CallContext, input: RegisterServer): Promise<ServerView> {
    const serverId = input.id ?? randomBytes(4).toString('hex');
    const endpoint = endpointFrom(input);
    const row = await this.acts.prepareAndWrite(
      ctx,
      'mcp.server.register',
      { server: serverId, at: whereabouts(endpoint) },
      () => this.pool.probe(serverId, endpoint, input.roots ?? []),
      async (tx, offer) => {
        await this.store.lock(tx, ctx.org.id);
        const place = { id: newId(), orgId: ctx.org.id };
        const stored = await this.store.insert(tx, {
          ...place,
          serverId,
          name: input.name ?? nameOf(offer) ?? serverId,
          offer,
          ...columnsOf(input),
          ...this.places.columnsOf(place, endpoint),
        });
        this.upstreams.tellChanged(tx, stored);
        return stored;
      },
    );
    return this.viewOf(row);
  }

  /** Those that the caller may discover, in order of their ids. */
  list(ctx: CallContext, { limit, cursor, status }: ServerQuery): Promise<Page<ServerView>> {
    return this.acts.read(ctx, 'mcp.server.list', async () => {
      const scope = `mcp-servers:${ctx.org.id}:${status ?? ''}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const rows = (await this.store.findAll(ctx.org.id)).filter(({ serverId }) => !after || serverId > after);
      const shown = await Promise.all(rows.map((row) => this.upstreams.mayDiscover(ctx, row.serverId)));
      const views = rows.filter((_, index) => shown[index]).map((row) => this.viewOf(row));
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
    return this.acts.read(ctx, 'mcp.server.get', async () => this.viewOf(await this.visible(ctx, serverId)));
  }

  /** Throws as `register` does, `not_found`, and `conflict` for another place of a server that the operator has written down. */
  async change(ctx: CallContext, serverId: string, input: ChangeServer): Promise<ServerView> {
    const { name, timeoutMs, autoReconnect, toolAllowList, resourceAllowList, roots, callsPerMinute } = input;
    const changed = await this.acts.prepareAndWrite(
      ctx,
      'mcp.server.change',
      { server: serverId, fields: Object.keys(input) },
      async () => {
        const row = await this.visible(ctx, serverId);
        const known = this.places.endpointOf(row);
        const endpoint = endpointChanged(known, input);
        if (JSON.stringify(endpoint) === JSON.stringify(known)) return { row };
        if (row.source === 'config') throw declaredElsewhere();
        return { row, moved: { endpoint, offer: await this.pool.probe(serverId, endpoint, roots ?? row.roots) } };
      },
      async (tx, { row, moved }) => {
        const place = moved && { ...this.places.columnsOf(row, moved.endpoint), offer: moved.offer };
        const use = { timeoutMs, autoReconnect, toolAllowList, resourceAllowList, roots, callsPerMinute };
        const change = { name, ...use, ...place };
        const stored = await this.store.update(tx, row, change);
        this.upstreams.tellChanged(tx, stored);
        return stored;
      },
    );
    return this.viewOf(changed);
  }

  /** Connects anew, whatever happened before, and reads what it has. Throws `not_found`, and as `register` does. */
  async refresh(ctx: CallContext, serverId: string): Promise<ServerView> {
    const fresh = await this.acts.prepareAndWrite(
      ctx,
      'mcp.server.refresh',
      { server: serverId },
      async () => {
        const row = await this.visible(ctx, serverId);
        this.pool.drop(row.id);
        return { row, offer: await this.pool.to(row).main.offer() };
      },
      async (tx, { row, offer }) => {
        const stored = await this.store.update(tx, row, { offer });
        this.upstreams.tellChanged(tx, stored);
        return stored;
      },
    );
    return this.viewOf(fresh);
  }

  /** Its tools are gone, and calls that are under way end as `unavailable` (AE-48). Throws `not_found`. */
  unregister(ctx: CallContext, serverId: string): Promise<void> {
    return this.acts.prepareAndWrite(
      ctx,
      'mcp.server.unregister',
      { server: serverId },
      () => this.visible(ctx, serverId),
      async (tx, row) => {
        if (!(await this.store.delete(tx, row.id))) throw noSuchServer();
        this.upstreams.tellChanged(tx, row);
      },
    );
  }

  private async visible(ctx: CallContext, serverId: string): Promise<McpServerEntity> {
    const row = await this.store.find(ctx.org.id, serverId);
    if (!row || !(await this.upstreams.mayDiscover(ctx, serverId))) throw noSuchServer();
    return row;
  }

  private viewOf(row: McpServerEntity): ServerView {
    const line = this.pool.lineTo(row);
    const { protocolVersion, serverInfo } = row.offer;
    const { tools, resources, templates, prompts } = serverOf(row);
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
      timeoutMs: row.timeoutMs,
      autoReconnect: row.autoReconnect,
      toolAllowList: row.toolAllowList,
      resourceAllowList: row.resourceAllowList,
      roots: row.roots,
      callsPerMinute: row.callsPerMinute,
      source: row.source,
      status: line?.status ?? 'disconnected',
      error: line?.error?.message ?? null,
      connectedAt: line?.connectedAt === undefined ? null : new Date(line.connectedAt).toISOString(),
      lastPingMs: line?.lastPingMs ?? null,
      mcpVersion: protocolVersion,
      serverName: textOf(serverInfo.name),
      serverVersion: textOf(serverInfo.version),
      tools: tools.map(({ tool, canonical }) => ({ name: tool.name, toolName: canonical })),
      counts: {
        tools: tools.length,
        resources: resources.length,
        resourceTemplates: templates.length,
        prompts: prompts.length,
      },
      createdAt: row.createdAt.toISOString(),
      updatedAt: row.updatedAt.toISOString(),
    };
  }
}

/** For the audit: a host, or a program. */
function whereabouts(endpoint: Endpoint): string {
  if (endpoint.transport === 'stdio') return endpoint.program.command;
  return URL.canParse(endpoint.url) ? new URL(endpoint.url).host : '';
}

/** Servers like to have their secrets there. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function nameOf({ serverInfo }: Offer): string | undefined {
  const name = textOf(serverInfo.title) || textOf(serverInfo.name);
  return name.trim() === '' ? undefined : name.trim().slice(0, 200);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function declaredElsewhere(): RialtoError {
  return new RialtoError('conflict', {
    message: 'this MCP server is declared in a configuration file',
    hint: 'change its place there; it is read at the start',
  });
}

function noSuchServer(): RialtoError {
  return new RialtoError('not_found', { message: 'no such MCP server' });
}
