import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { OrgDirectory } from '../../policy/org-directory.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import { PublishedAgentStore } from './published-agent.store.js';
import { agentOf } from './published-definition.js';
import type { PublishedAgent } from '../published.types.js';
import { RegistryService } from '../registry.service.js';
import type { RegisteredAgent } from '../registry.types.js';
import { noServers, ToolServers } from '../tool-servers.js';

const noAgents = { byId: new Map<string, RegisteredAgent>(), bySlug: new Map<string, RegisteredAgent>() };

/**
 * Loads published agents from their rows and from the MCP servers and registered agents that some of them depend on.
 */
@Injectable()
export class PublishedLoader {
  /** The org of each loaded agent. It never changes. */
  readonly orgs = new Map<AgentId, OrgId>();

  /** Orgs with agents that depend on tools. Only these orgs need a query of their MCP servers. */
  private readonly madeOfTools = new Set<string>();
  private readonly madeOfRemotes = new Set<string>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: PublishedAgentStore,
    private readonly directory: OrgDirectory,
    private readonly servers: ToolServers,
    private readonly registry: RegistryService,
  ) {}

  /** Returns a text that changes whenever an agent of the org does. */
  async version(org: string): Promise<string> {
    const [rows, tools, remotes] = await Promise.all([
      this.store.version(org),
      this.madeOfTools.has(org) ? this.servers.serversOf(org as OrgId) : undefined,
      this.madeOfRemotes.has(org) ? this.registry.snapshot(org) : undefined,
    ]);
    return [rows, ...[tools, remotes].flatMap((source) => source?.version ?? [])].join('|');
  }

  /** Returns all agents sorted by name; disabled ones are included. */
  async load(id: OrgId): Promise<PublishedAgent[]> {
    const [org, rows] = await Promise.all([this.directory.byId(id), this.store.findAll(id)]);
    setMember(this.madeOfTools, id, rows.some(isMadeOfTools));
    setMember(this.madeOfRemotes, id, rows.some(isMadeOfRemote));
    if (!org) return [];
    for (const row of rows) this.orgs.set(row.id, id);
    return this.agentsOf(rows, org);
  }

  /** Returns the org of an agent, archived or not. */
  async findOrg(id: AgentId): Promise<OrgId | undefined> {
    return this.orgs.get(id) ?? this.store.orgOf(id);
  }

  /** Returns the org of the agent with a handle that names a host, as JSON text; `null` when there is none. */
  ownerOf(handle: string): Promise<string> {
    return this.store.ownerOfHandle(handle);
  }

  /** Returns the agents of these rows, in the same order. */
  async agentsOf(rows: readonly PublishedAgentEntity[], org: OrgRef): Promise<PublishedAgent[]> {
    const servers = rows.some(isMadeOfTools) ? await this.servers.serversOf(org.id) : noServers;
    const { byId, bySlug } = rows.some(isMadeOfRemote) ? await this.registry.snapshot(org.id) : noAgents;
    // A declaration names a registered agent by its slug.
    const remotes = new Map<string, RegisteredAgent>([...bySlug, ...byId]);
    const acceptsCleartext = this.settings.RIALTO_A2A_ACCEPT_CLEARTEXT;
    const at = new Date(systemClock.now());
    return rows.map((row) => agentOf(row, { org, acceptsCleartext, servers, remotes, at }));
  }
}

function setMember(orgs: Set<string>, org: string, isWanted: boolean): void {
  if (isWanted) orgs.add(org);
  else orgs.delete(org);
}

/** Returns whether the agent takes its input modes from the registered agent behind it, because it declares none. */
function isMadeOfRemote({ executor, card }: PublishedAgentEntity): boolean {
  return executor.kind === 'remote' && card.inputModes.length === 0;
}

function isMadeOfTools({ executor }: PublishedAgentEntity): boolean {
  return executor.kind === 'mcp-tool';
}
