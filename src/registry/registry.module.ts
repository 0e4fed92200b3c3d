import { Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../audit/audit.module.js';
import { Ledger } from '../platform/bus/ledger.js';
import { PolicyModule } from '../policy/policy.module.js';
import { PolicyService } from '../policy/policy.service.js';
import { AgentCredentials } from './agent-credentials.service.js';
import { AgentCardChangeEntity, AgentEntity } from './agent.entity.js';
import { agentStatsRecorder } from './agent-stats.recorder.js';
import { AgentStore } from './agent.store.js';
import { factsOf } from './agent-view.js';
import { CallRetentionSweeper } from './call-retention.sweeper.js';
import { CardFetcher } from './card-fetcher.js';
import { CardRefreshProcessor } from './card-refresh.processor.js';
import { CardRefreshSweeper } from './card-refresh.sweeper.js';
import { CardRefresher } from './card-refresher.js';
import { DeclaredAgents } from './declared-agents.service.js';
import { RegistryController } from './registry.controller.js';
import { RegistryActs } from './registry-acts.js';
import { RegistryService } from './registry.service.js';

/** Room 6: agents, cards, health, load. */
@Module({
  imports: [AuditModule, PolicyModule, TypeOrmModule.forFeature([AgentEntity, AgentCardChangeEntity])],
  controllers: [RegistryController],
  providers: [
    RegistryService,
    RegistryActs,
    AgentStore,
    AgentCredentials,
    CardFetcher,
    CardRefresher,
    CardRefreshProcessor,
    CardRefreshSweeper,
    CallRetentionSweeper,
    DeclaredAgents,
  ],
  exports: [RegistryService, AgentCredentials, AgentStore],
})
export class RegistryModule implements OnModuleInit {
  constructor(
    private readonly ledger: Ledger,
    private readonly policy: PolicyService,
    private readonly registry: RegistryService,
  ) {}

  onModuleInit(): void {
    this.ledger.add(agentStatsRecorder);
    this.policy.factsFrom(async (org, slug) => {
      const agent = (this.registry.peekSnapshot(org) ?? (await this.registry.snapshot(org))).bySlug.get(slug);
      return agent && factsOf(agent);
    });
  }
}
