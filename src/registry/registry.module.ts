import { Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../audit/audit.module.js';
import { Ledger } from '../platform/bus/ledger.js';
import { PolicyModule } from '../policy/policy.module.js';
import { OrgService } from '../policy/org.service.js';
import { PolicyService } from '../policy/policy.service.js';
import { AgentCredentials } from './agent-credentials.js';
import { AgentCardChangeEntity, AgentEntity } from './agents/agent.entity.js';
import { agentStatsRecorder } from './agents/agent-stats.recorder.js';
import { AgentProofs } from './agent-proofs.js';
import { AgentStore } from './agents/agent.store.js';
import { factsOf } from './agents/agent-view.js';
import { CallRetentionSweeper } from './dispatch/call-retention.sweeper.js';
import { CardFetcher } from './refresh/card-fetcher.js';
import { CardLooks } from './refresh/card-looks.js';
import { CardRefreshProcessor } from './refresh/card-refresh.processor.js';
import { CardRefreshSweeper } from './refresh/card-refresh.sweeper.js';
import { CardRefresher } from './refresh/card-refresher.js';
import { CardSigner } from './cards/card-signer.js';
import { CardVerifier } from './cards/card-verifier.js';
import { AgentsFolderSweeper } from './declared/agents-folder.sweeper.js';
import { Declarations } from './declarations.js';
import { DispatchLogController } from './dispatch/dispatch-log.controller.js';
import { DispatchLogService } from './dispatch/dispatch-log.service.js';
import { DispatchStore } from './dispatch/dispatch.store.js';
import { ExecutorSecrets } from './executor-secrets.js';
import { DeclaredPublished } from './declared/declared-published.js';
import { DeclaredAgents } from './declared/declared-agents.js';
import { OwnRouting } from './own-routing.js';
import { PublishedAgentEntity } from './published/published-agent.entity.js';
import { PublishedAgentStore } from './published/published-agent.store.js';
import { PublishedCards } from './published/published-cards.js';
import { PublishedChecks } from './published/published-checks.js';
import { PublishedController } from './published/published.controller.js';
import { PublishedLoader } from './published/published-loader.js';
import { PublishedViews } from './published/published-views.js';
import { PublishedService } from './published.service.js';
import { EncryptionKeysService } from './published/encryption-keys.service.js';
import { PublishingService } from './published/publishing.service.js';
import { RegistryController } from './admin/registry.controller.js';
import { AgentAdminService } from './admin/agent-admin.service.js';
import { AgentReadService } from './admin/agent-read.service.js';
import { AgentWriter } from './admin/agent-writer.js';
import { PublishedReadService } from './published/published-read.service.js';
import { PublishedWriter } from './published/published-writer.js';
import { AgentStats } from './agent-stats.js';
import { ToolServers } from './tool-servers.js';
import { TaskAgents } from './task-agents.js';
import { RegistryService, type AgentSnapshot } from './registry.service.js';
import { RoutingService } from './routing.service.js';

/** Module 7: registered agents with their cards, health and load; published agents. */
@Module({
  imports: [
    AuditModule,
    PolicyModule,
    TypeOrmModule.forFeature([AgentEntity, AgentCardChangeEntity, PublishedAgentEntity]),
  ],
  controllers: [RegistryController, PublishedController, DispatchLogController],
  providers: [
    RegistryService,
    TaskAgents,
    AgentStats,
    AgentReadService,
    AgentAdminService,
    AgentWriter,
    PublishedReadService,
    PublishedWriter,
    AgentStore,
    AgentCredentials,
    CardFetcher,
    AgentProofs,
    CardVerifier,
    CardLooks,
    CardRefresher,
    CardRefreshProcessor,
    CardRefreshSweeper,
    CallRetentionSweeper,
    Declarations,
    DeclaredAgents,
    DeclaredPublished,
    AgentsFolderSweeper,
    PublishedService,
    PublishingService,
    EncryptionKeysService,
    PublishedAgentStore,
    PublishedChecks,
    PublishedLoader,
    ExecutorSecrets,
    ToolServers,
    PublishedViews,
    PublishedCards,
    CardSigner,
    DispatchStore,
    DispatchLogService,
    RoutingService,
    OwnRouting,
  ],
  exports: [
    RegistryService,
    AgentCredentials,
    AgentProofs,
    AgentStore,
    PublishedService,
    RoutingService,
    OwnRouting,
    TaskAgents,
    AgentStats,
    ExecutorSecrets,
    ToolServers,
  ],
})
export class RegistryModule implements OnModuleInit {
  constructor(
    private readonly ledger: Ledger,
    private readonly policy: PolicyService,
    private readonly registry: RegistryService,
    private readonly orgs: OrgService,
    private readonly published: PublishedAgentStore,
  ) {}

  onModuleInit(): void {
    this.ledger.add(agentStatsRecorder);
    this.policy.factsFrom((org, slug) => {
      const find = ({ bySlug }: AgentSnapshot) => {
        const agent = bySlug.get(slug);
        return agent && factsOf(agent);
      };
      const fresh = this.registry.peekSnapshot(org);
      return fresh ? find(fresh) : this.registry.snapshot(org).then(find);
    });
    this.orgs.publishedFrom(async (org, name) => (await this.published.find(org, name))?.name === name);
  }
}
