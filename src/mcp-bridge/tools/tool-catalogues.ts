import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { inTurns } from '../../platform/jobs/in-turns.js';
import { RegistryService, type AgentSnapshot } from '../../registry/registry.service.js';
import { UpstreamsService, type ServerSnapshot } from '../../upstreams/upstreams.service.js';
import { catalogueOf, type ToolCatalogue, type ToolOwner } from './tool-catalogue.js';

/**
 * The tool catalogues of each org, built once for each state of its agents and MCP servers. For some servers the tools
 * differ by caller.
 */
@Injectable()
export class ToolCatalogues {
  private readonly catalogues = new WeakMap<ServerSnapshot, { agents: AgentSnapshot; catalogue: ToolCatalogue }>();

  constructor(
    private readonly registry: RegistryService,
    private readonly upstreams: UpstreamsService,
  ) {}

  /** Returns the catalogue as the caller sees it. */
  async catalogueFor(ctx: CallContext): Promise<ToolCatalogue> {
    const { org } = ctx;
    const agents = this.registry.peekSnapshot(org.id) ?? (await this.registry.snapshot(org.id));
    const servers = this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx));
    let known = this.catalogues.get(servers);
    if (known?.agents !== agents) {
      known = { agents, catalogue: await inTurns(catalogueOf(agents, servers)) };
      this.catalogues.set(servers, known);
    }
    return known.catalogue;
  }

  mayDiscover(ctx: CallContext, { kind, id }: ToolOwner): Promise<boolean> {
    return (kind === 'agent' ? this.registry : this.upstreams).mayDiscover(ctx, id);
  }
}
