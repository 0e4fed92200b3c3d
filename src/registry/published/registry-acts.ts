import { Injectable } from '@nestjs/common';
import { VerbBus } from '../../kernel/verb-bus.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';

/** Runs acts of the registry on the verb bus and publishes its notices. */
@Injectable()
export class RegistryActs {
  constructor(
    readonly admin: AdminActs,
    readonly verbs: VerbBus,
    private readonly notices: Notices,
  ) {}

  tellChanged(tx: Tx, { orgId, id }: Pick<AgentEntity, 'orgId' | 'id'>): void {
    this.notices.tell(tx, 'agent.card-changed', { orgId, agentId: id });
  }

  tellPublished(tx: Tx, { orgId, id }: Pick<PublishedAgentEntity, 'orgId' | 'id'>): void {
    this.notices.tell(tx, 'published.changed', { orgId, agentId: id });
  }
}
