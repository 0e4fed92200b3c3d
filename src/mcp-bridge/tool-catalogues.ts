import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RegistryService, type AgentSnapshot } from '../registry/registry.service.js';
import { UpstreamsService, type ServerSnapshot } from '../upstreams/upstreams.service.js';
import { catalogueOf, type ToolCatalogue, type ToolOwner } from './tool-catalogue.js';

/** The tools of each org, made once for each state of its agents and MCP servers. */
@Injectable()
export class ToolCatalogues {
  private readonly catalogues = new WeakMap<AgentSnapshot, { servers: ServerSnapshot; catalogue: ToolCatalogue }>();

  constructor(
    private readonly registry: RegistryService,
    private readonly upstreams: UpstreamsService,
  ) {}

  async of({ org }: CallContext): Promise<ToolCatalogue> {
    const agents = this.registry.peekSnapshot(org.id) ?? (await this.registry.snapshot(org.id));
    const servers = this.upstreams.peekSnapshot(org.id) ?? (await this.upstreams.snapshot(org.id));
    let known = this.catalogues.get(agents);
    if (known?.servers !== servers) {
      known = { servers, catalogue: catalogueOf(agents, servers) };
      this.catalogues.set(agents, known);
    }
    return known.catalogue;
  }

  mayDiscover(ctx: CallContext, { kind, id }: ToolOwner): Promise<boolean> {
    return (kind === 'agent' ? this.registry : this.upstreams).mayDiscover(ctx, id);
  }
}
