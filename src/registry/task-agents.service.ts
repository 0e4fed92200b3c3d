import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import type { AgentId, OrgId } from '../kernel/ids.js';
import { OrgDirectory } from '../policy/auth/org-directory.service.js';
import { PublishedService } from './published.service.js';
import type { PublishedAgent } from './published.types.js';
import { RegistryService } from './registry.service.js';
import type { RegisteredAgent } from './registry.types.js';

/** Who works on a task. */
export interface TaskAgent {
  readonly agent: PublishedAgent;
  /** The task was adopted from a call to a registered agent. */
  readonly isAdopted: boolean;
}

/** The agents of tasks: those of ours, and registered ones for the tasks that were adopted from calls to them. */
@Injectable()
export class TaskAgents {
  constructor(
    private readonly published: PublishedService,
    private readonly registry: RegistryService,
    private readonly orgs: OrgDirectory,
  ) {}

  /** Undefined when the agent is neither published nor registered any more. */
  async of({ agentId, orgId }: { agentId: AgentId; orgId: OrgId }): Promise<TaskAgent | undefined> {
    const agent = await this.published.byId(agentId);
    if (agent) return { agent, isAdopted: false };
    const [{ byId }, org] = await Promise.all([this.registry.snapshot(orgId), this.orgs.byId(orgId)]);
    const registered = byId.get(agentId);
    return registered && org && { agent: forAdopted(registered, org), isAdopted: true };
  }
}

/** A registered agent as the agent of a task of ours; no door knows it. */
export function forAdopted({ row, card }: RegisteredAgent, org: OrgRef): PublishedAgent {
  return {
    id: row.id,
    org,
    name: row.slug,
    description: card?.description ?? '',
    executor: { kind: 'remote', agentId: row.id },
    source: 'api',
    enabled: false,
    acceptCleartext: false,
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
    version: card?.version ?? '',
    updatedAt: row.updatedAt,
    revision: '',
  };
}
