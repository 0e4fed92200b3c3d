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

  /**
   * Returns all agents sorted by name, with their rows; disabled ones are included.
   * @param earlier rows of an earlier load. Only agents with another revision are read.
   */
  async load(
    id: OrgId,
    earlier: PublishedRows = new Map(),
  ): Promise<{ agents: PublishedAgent[]; rows: PublishedRows }> {
    const [org, rows] = await Promise.all([this.directory.byId(id), this.findRows(id, earlier)]);
    setMember(this.madeOfTools, id, rows.some(isMadeOfTools));
    setMember(this.madeOfRemotes, id, rows.some(isMadeOfRemote));
    if (!org) return { agents: [], rows: new Map() };
    for (const row of rows) this.orgs.set(row.id, id);
    return { agents: await this.agentsOf(rows, org), rows: new Map(rows.map((row) => [row.id, row])) };
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

  private async findRows(org: OrgId, earlier: PublishedRows): Promise<PublishedAgentEntity[]> {
    const revisions = await this.store.revisions(org);
    const isKnown = ({ id, revision }: Revision): boolean => earlier.get(id)?.revision === revision;
    const read = await this.store.findByIds(revisions.filter((one) => !isKnown(one)).map(({ id }) => id));
    const changed = new Map(read.map((row) => [row.id, row]));
    return revisions.flatMap((one) => (isKnown(one) ? earlier.get(one.id)! : (changed.get(one.id) ?? [])));
  }
}

type Revision = Pick<PublishedAgentEntity, 'id' | 'revision'>;

/** The rows of an org's agents, by id. */
export type PublishedRows = ReadonlyMap<AgentId, PublishedAgentEntity>;

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
