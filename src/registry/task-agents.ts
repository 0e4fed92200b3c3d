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

/** Who works on a task. */
export interface TaskAgent {
  readonly agent: PublishedAgent;
  /** The task was adopted from a call to a registered agent, or of a tool of an MCP server. */
  readonly isAdopted: boolean;
}

/** The agents of tasks: those of ours; registered ones, and MCP servers, for the tasks that were adopted from calls to them. */
@Injectable()
export class TaskAgents {
  constructor(
    readonly published: PublishedService,
    private readonly registry: RegistryService,
    private readonly orgs: OrgDirectory,
    private readonly servers: ToolServers,
    private readonly auth: AuthService,
  ) {}

  /** Whoever sent a task, as far as it is let in today; undefined when it is not (abuse case 17). */
  senderOf({ principal }: { principal: Principal }, org: OrgRef): Promise<Principal | undefined> {
    return this.auth.standing({ org, principal });
  }

  /** Undefined when nobody of that id is published or registered any more. */
  async of({ agentId, orgId }: { agentId: AgentId; orgId: OrgId }): Promise<TaskAgent | undefined> {
    const agent = await this.published.byId(agentId);
    if (agent) return { agent, isAdopted: false };
    const [{ byId }, org] = await Promise.all([this.registry.snapshot(orgId), this.orgs.byId(orgId)]);
    const registered = byId.get(agentId);
    if (!org) return undefined;
    if (registered) return { agent: forAdopted(registered, org), isAdopted: true };
    const serverId = (await this.servers.of(orgId)).ids.get(agentId);
    return serverId === undefined ? undefined : { agent: forServer(agentId, serverId, org), isAdopted: true };
  }
}

/** A registered agent as the agent of a task of ours; no door knows it. */
export function forAdopted({ row, card }: RegisteredAgent, org: OrgRef): PublishedAgent {
  const { id, slug: name, updatedAt } = row;
  const executor = { kind: 'remote', agentId: id } as const;
  const { description = '', version = '' } = card ?? {};
  return { ...nobodys, id, org, name, executor, description, version, updatedAt };
}

/** An MCP server as the agent of the tasks that its tools answered with; no door knows it. @param id of its row. */
export function forServer(id: AgentId, serverId: string, org: OrgRef): PublishedAgent {
  const executor = { kind: 'mcp-tool', serverId } as const;
  return { ...nobodys, id, org, name: serverId, executor, description: '', version: '', updatedAt: new Date(0) };
}

const nobodys = {
  source: 'api',
  enabled: false,
  acceptCleartext: true,
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
