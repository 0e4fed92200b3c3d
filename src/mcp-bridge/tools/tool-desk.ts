import { Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { UpstreamTools } from '../../upstreams/upstream-tools.js';
import { isListed, ownerOf, type ToolEntry } from './tool-catalogue.js';
import { ToolCatalogues } from './tool-catalogues.js';
import { ServerCalls } from './server-calls.js';
import { beforeCallersLeaveMs } from './tool-call.types.js';
import { ToolRouter } from './tool-router.js';
import type { CalledTool, CallTool, ToolQuery, ToolView } from './tools.types.js';

/** Tools for clients of the REST API: finds tools by their names and calls them. */
@Injectable()
export class ToolDesk {
  constructor(
    private readonly catalogues: ToolCatalogues,
    private readonly router: ToolRouter,
    private readonly serverTools: UpstreamTools,
    private readonly servers: ServerCalls,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Returns the tools of agents and servers that the caller may discover, in order of their canonical names. Throws
   * `invalid_params` for a cursor of another list.
   */
  async listTools(ctx: CallContext, { limit, cursor, ...wanted }: ToolQuery): Promise<Page<ToolView>> {
    const { entries } = await this.catalogues.catalogueFor(ctx);
    const scope = JSON.stringify(['tools', ctx.org.id, wanted]);
    const [after = ''] = cursor === undefined ? [] : this.cursors.decode(scope, cursor, 1);
    const visible = new Map<string, Promise<boolean>>();
    const views: ToolView[] = [];
    for (const entry of entries) {
      if (entry.canonical <= after || !isWanted(entry, wanted)) continue;
      const owner = ownerOf(entry);
      const key = `${owner.kind} ${owner.id}`;
      if (!visible.has(key)) visible.set(key, this.catalogues.mayDiscover(ctx, owner));
      if (await visible.get(key)) views.push(toolView(entry));
      if (views.length > limit) break;
    }
    return pageOf(
      views,
      limit,
      (view) => view,
      ({ name }) => this.cursors.encode(scope, [name]),
    );
  }

  /**
   * Calls a tool by either of its names; any other name is looked up on all MCP servers. Throws the errors of
   * ToolRouter.callTool and ServerCalls.callTool.
   */
  async callTool(ctx: CallContext, { name, arguments: args, strategy }: CallTool): Promise<CalledTool> {
    const { byName } = await this.catalogues.catalogueFor(ctx);
    const known = byName.get(name);
    const target = known ? undefined : await this.serverTools.chooseTool(ctx, name, strategy);
    if (target) {
      const { canonical, server } = target;
      const call = { target, canonical, serverId: server.row.serverId, args };
      const { result } = await this.servers.callTool(ctx, call, beforeCallersLeaveMs);
      return { name: canonical, result: result as JsonObject };
    }
    const { result } = await this.router.callTool(ctx, { name, args }, { isRest: true });
    return { name: known?.canonical ?? name, result: result as JsonObject };
  }
}

function isWanted(entry: ToolEntry, { quarantined, ...wanted }: Omit<ToolQuery, 'limit' | 'cursor'>): boolean {
  if (quarantined === 'true' ? !quarantineOf(entry) : !isListed(entry)) return false;
  const { name, server, agent, q } = wanted;
  const { kind, id } = ownerOf(entry);
  if (server !== undefined && (kind !== 'server' || id !== server)) return false;
  if (agent !== undefined && (kind !== 'agent' || id !== agent)) return false;
  if (name !== undefined && ![entry.canonical, entry.alias, ownName(entry)].includes(name)) return false;
  return q === undefined || searchText(entry).toLowerCase().includes(q.toLowerCase());
}

function searchText(entry: ToolEntry): string {
  const { name, title, description } = toolOf(entry);
  return [name, title, description].filter((words) => typeof words === 'string').join('\n');
}

function toolOf(entry: ToolEntry): ToolView['tool'] {
  return parseExact(entry.listed.canonical) as ToolView['tool'];
}

function toolView(entry: ToolEntry): ToolView {
  const { kind, id } = ownerOf(entry);
  return {
    name: entry.canonical,
    alias: entry.alias,
    server: kind === 'server' ? id : null,
    agent: kind === 'agent' ? id : null,
    own: ownName(entry),
    quarantine: quarantineOf(entry),
    tool: toolOf(entry),
  };
}

function quarantineOf(entry: ToolEntry): ToolView['quarantine'] {
  return entry.kind === 'upstream' ? entry.target.quarantine : undefined;
}

function ownName(entry: ToolEntry): string {
  return entry.kind === 'skill' ? entry.skillId : entry.target.tool.name;
}
