import { Injectable } from '@nestjs/common';
import type { OrgRef, Principal } from '../kernel/call-context.js';
import type { AgentId, OrgId } from '../kernel/ids.js';
import { AuthService } from '../policy/auth.service.js';
import { OrgDirectory } from '../policy/org-directory.js';
import { PublishedService } from './published.service.js';
import type { PublishedAgent } from './published.types.js';
import { RegistryService } from './registry.service.js';
import type { RegisteredAgent } from './registry.types.js';
import { ToolServers } from './tool-servers.js';

/** The agent of a task. */
export interface TaskAgent {
  readonly agent: PublishedAgent;
  /** True when the task was adopted from a call to a registered agent, or to a tool of an MCP server. */
  readonly isAdopted: boolean;
}

/**
 * Finds the agents of tasks: published agents, and for adopted tasks the registered agent or MCP server that was
 * called.
 */
@Injectable()
export class TaskAgents {
  constructor(
    readonly published: PublishedService,
    private readonly registry: RegistryService,
    private readonly orgs: OrgDirectory,
    private readonly servers: ToolServers,
    private readonly auth: AuthService,
  ) {}

  /**
   * Returns the sender of a task with its current rights; undefined when it has no access any more (abuse case 17).
   */
  senderOf({ principal }: { principal: Principal }, org: OrgRef): Promise<Principal | undefined> {
    return this.auth.standing({ org, principal });
  }

  /**
   * Returns the agent of a task; undefined when no published or registered agent and no MCP server has its id any
   * more.
   */
  async agentOf({ agentId, orgId }: { agentId: AgentId; orgId: OrgId }): Promise<TaskAgent | undefined> {
    const agent = await this.published.byId(agentId);
    if (agent) return { agent, isAdopted: false };
    const [{ byId }, org] = await Promise.all([this.registry.snapshot(orgId), this.orgs.byId(orgId)]);
    const registered = byId.get(agentId);
    if (!org) return undefined;
    if (registered) return { agent: forAdopted(registered, org), isAdopted: true };
    const serverId = (await this.servers.serversOf(orgId)).ids.get(agentId);
    return serverId === undefined ? undefined : { agent: forServer(agentId, serverId, org), isAdopted: true };
  }
}

/** Returns a registered agent as the agent of an adopted task. No door shows it. */
export function forAdopted({ row, card }: RegisteredAgent, org: OrgRef): PublishedAgent {
  const { id, slug: name, updatedAt } = row;
  const executor = { kind: 'remote', agentId: id } as const;
  const { description = '', version = '' } = card ?? {};
  return { ...adoptedDefaults, id, org, name, executor, description, version, updatedAt };
}

/**
 * Returns an MCP server as the agent of tasks that its tools created. No door shows it.
 * @param id of the server's row.
 */
export function forServer(id: AgentId, serverId: string, org: OrgRef): PublishedAgent {
  const executor = { kind: 'mcp-tool', serverId } as const;
  return {
    ...adoptedDefaults,
    id,
    org,
    name: serverId,
    executor,
    description: '',
    version: '',
    updatedAt: new Date(0),
  };
}

const adoptedDefaults = {
  source: 'api',
  enabled: false,
  acceptCleartext: true,
  keys: [],
  publishToCard: false,
  skills: [],
  inputModes: ['*/*'],
  outputModes: [],
  streaming: false,
  pushNotifications: false,
  extendedCard: false,
  extensions: [],
  versions: [],
  history: 'context',
  revision: '',
} as const satisfies Partial<PublishedAgent>;
