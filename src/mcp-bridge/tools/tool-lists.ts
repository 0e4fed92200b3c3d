import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { Cursors } from '../../platform/http/cursor.js';
import { OrgService } from '../../policy/org.service.js';
import { PageFiller, type Page, type Position } from './list-page.js';
import { OwnAgentTools } from './own-agent-tools.js';
import { TaskStatusTool } from './task-status-tool.js';
import type { ListOptions } from './tool-call.types.js';
import { isListed, ownerOf, textsOf, type ListedNames, type ToolEntry } from './tool-catalogue.js';
import { ToolCatalogues } from './tool-catalogues.js';

/**
 * Lists the tools that an MCP client may discover: first those of the gateway itself, then the skills of registered
 * agents and the tools of MCP servers.
 */
@Injectable()
export class ToolLists {
  constructor(
    private readonly catalogues: ToolCatalogues,
    private readonly orgs: OrgService,
    private readonly cursors: Cursors,
    private readonly agents: OwnAgentTools,
    private readonly status: TaskStatusTool,
  ) {}

  /**
   * Returns a page of tools in a stable order. A cursor continues after the tool that it names, even when that tool no
   * longer exists; throws `invalid_params` for a cursor of another org or of other list options (MCP, pagination).
   */
  async listTools(ctx: CallContext, options: ListOptions, cursor?: unknown): Promise<Page> {
    const page = await this.listCatalogue(ctx, options, cursor);
    if (cursor !== undefined || options.agents || options.servers || options.only !== undefined) return page;
    const listed = await this.agents.listed(ctx);
    return { ...page, texts: [...listed, ...(await this.status.listed(ctx)), ...page.texts] };
  }

  private async listCatalogue(
    ctx: CallContext,
    { names, agents, only, ...more }: ListOptions,
    cursor: unknown,
  ): Promise<Page> {
    const catalogue = await this.catalogues.catalogueFor(ctx);
    const mode = only === undefined ? (names ?? (await this.orgs.toolSettings(ctx.org.id)).names) : 'own';
    const servers = only === undefined ? more.servers : new Set([only]);
    const wanted = agents || servers ? { agent: agents, server: servers } : undefined;
    const scope = JSON.stringify(['mcp-tools', ctx.org.id, mode, sorted(agents), sorted(servers)]);
    const after = cursor === undefined ? undefined : this.positionOf(scope, cursor);
    const visible = new Map<string, boolean>();
    const page = new PageFiller();
    for (const entry of catalogue.entries) {
      const { kind, id } = ownerOf(entry);
      if ((after && entry.canonical < after[0]) || !isListed(entry) || (wanted && !wanted[kind]?.has(id))) continue;
      const owner = `${kind} ${id}`;
      if (!visible.has(owner)) visible.set(owner, await this.catalogues.mayDiscover(ctx, { kind, id }));
      if (visible.get(owner) && !fill(page, entry, mode, after))
        return { texts: page.texts, nextCursor: this.cursors.encode(scope, [...page.last!] as string[]) };
    }
    return { texts: page.texts };
  }

  private positionOf(scope: string, cursor: unknown): Position {
    const [canonical, index] = this.cursors.decode(scope, typeof cursor === 'string' ? cursor : '', 2);
    return [canonical!, index];
  }
}

/** Adds the texts of an entry after a position; returns false when the page is full before the last text. */
function fill(page: PageFiller, entry: ToolEntry, mode: ListedNames, after: Position | undefined): boolean {
  const firstIndex = after?.[0] === entry.canonical ? Number(after[1]) + 1 : 0;
  return textsOf(entry, mode).every(
    (text, index) => index < firstIndex || page.add(text, [entry.canonical, String(index)]),
  );
}

function sorted(ids: ReadonlySet<string> | undefined): string[] | null {
  return ids ? [...ids].sort() : null;
}
