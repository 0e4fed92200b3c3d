import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { OrgDirectory } from '../policy/auth/org-directory.service.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedAgentStore } from './published-agent.store.js';
import { agentOf } from './published-definition.js';
import type { PublishedAgent } from './published.types.js';
import { noServers, ToolServers } from './tool-servers.service.js';

/** Agents of our own as they are now: by their rows, and by the MCP servers whose tools some are made of. */
@Injectable()
export class PublishedLoader {
  /** Orgs that have such agents: nobody else's servers are looked at. */
  private readonly madeOfTools = new Set<string>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: PublishedAgentStore,
    private readonly orgs: OrgDirectory,
    private readonly servers: ToolServers,
  ) {}

  /** A text that changes whenever an agent of the org does. */
  async version(org: string): Promise<string> {
    const rows = await this.store.version(org);
    return this.madeOfTools.has(org) ? `${rows}|${(await this.servers.of(org as OrgId)).version}` : rows;
  }

  /** In order of name; those that are not enabled too. */
  async load(id: OrgId): Promise<PublishedAgent[]> {
    const [org, rows] = await Promise.all([this.orgs.byId(id), this.store.findAll(id)]);
    if (rows.some(isMadeOfTools)) this.madeOfTools.add(id);
    else this.madeOfTools.delete(id);
    return org ? this.agentsOf(rows, org) : [];
  }

  /** These rows, in their order. */
  async agentsOf(rows: readonly PublishedAgentEntity[], org: OrgRef): Promise<PublishedAgent[]> {
    const servers = rows.some(isMadeOfTools) ? await this.servers.of(org.id) : noServers;
    const acceptsCleartext = this.settings.RIALTO_A2A_ACCEPT_CLEARTEXT;
    const at = new Date(systemClock.now());
    return rows.map((row) => agentOf(row, { org, acceptsCleartext, servers, at }));
  }
}

function isMadeOfTools({ executor }: PublishedAgentEntity): boolean {
  return executor.kind === 'mcp-tool';
}
