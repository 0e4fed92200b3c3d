import { Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../audit/audit.module.js';
import { PolicyModule } from '../policy/policy.module.js';
import { PolicyService } from '../policy/policy.service.js';
import { RegistryModule } from '../registry/registry.module.js';
import { ToolServers } from '../registry/tool-servers.js';
import { DeclaredServers } from './declared-servers.js';
import { SuspendedAnswerStore } from './suspended-calls/suspended-answer.store.js';
import { HeldAnswersSweeper } from './suspended-calls/suspended-answers.sweeper.js';
import { SuspendedCalls } from './suspended-calls/suspended-calls.js';
import { McpServerEntity } from './storage/mcp-server.entity.js';
import { UpstreamAdmin } from './upstream-admin.js';
import { skillToolsOf } from './storage/registered-server.js';
import { ProgramCaches } from './programs/program-caches.js';
import { ProgramGuard } from './programs/program-guard.js';
import { ProgramSlots } from './programs/program-slots.js';
import { ServerChanges } from './catalog/server-changes.js';
import { ServerOffers } from './catalog/server-offers.js';
import { ServerViews } from './server-views.js';
import { CredentialChanges } from './credentials/credential-changes.js';
import { OwnCredentialAdmin } from './credentials/own-credential-admin.js';
import { StdioCatalogue } from './programs/stdio-catalogue.js';
import { ServerReader } from './server-reader.js';
import { SealedEndpoints } from './storage/sealed-endpoints.js';
import { UpstreamPool } from './connections/upstream-pool.js';
import { UpstreamTransports } from './transports/upstream-transports.js';
import { UpstreamStore } from './storage/upstream.store.js';
import { UpstreamDecisions } from './calls/upstream-decisions.js';
import { AskedQuestions } from './calls/asked-questions.js';
import { UpstreamRequests } from './calls/upstream-requests.js';
import { UpstreamCalls } from './upstream-calls.js';
import { UpstreamSubscriptions } from './upstream-subscriptions.js';
import { UpstreamTasks } from './upstream-tasks.js';
import { UpstreamTools } from './upstream-tools.js';
import { UserCredentialAdmin } from './credentials/user-credential-admin.js';
import { UserCredentialEntity } from './storage/user-credential.entity.js';
import { UserCredentialStore } from './storage/user-credential.store.js';
import { UserCredentialsController } from './credentials/user-credentials.controller.js';
import { UserCredentials } from './credentials/user-credentials.js';
import { CallerConnections } from './credentials/caller-connections.js';
import { UpstreamsController } from './admin/upstreams.controller.js';
import { UpstreamsService, type ServerSnapshot } from './upstreams.service.js';

/** Module for external MCP servers: an org uses their tools, resources and prompts. */
@Module({
  imports: [
    AuditModule,
    PolicyModule,
    RegistryModule,
    TypeOrmModule.forFeature([McpServerEntity, UserCredentialEntity]),
  ],
  controllers: [UpstreamsController, UserCredentialsController],
  providers: [
    ProgramCaches,
    ProgramGuard,
    ProgramSlots,
    UpstreamTransports,
    UpstreamPool,
    UpstreamStore,
    ServerOffers,
    ServerChanges,
    ServerViews,
    UpstreamsService,
    SuspendedCalls,
    SuspendedAnswerStore,
    HeldAnswersSweeper,
    UpstreamDecisions,
    UpstreamRequests,
    AskedQuestions,
    UpstreamCalls,
    UpstreamSubscriptions,
    UpstreamTasks,
    UpstreamTools,
    CallerConnections,
    UserCredentialStore,
    UserCredentials,
    CredentialChanges,
    OwnCredentialAdmin,
    UserCredentialAdmin,
    UpstreamAdmin,
    SealedEndpoints,
    StdioCatalogue,
    DeclaredServers,
    ServerReader,
  ],
  exports: [
    UpstreamsService,
    UpstreamCalls,
    UpstreamSubscriptions,
    UpstreamTasks,
    UpstreamTools,
    UpstreamAdmin,
    ServerViews,
    DeclaredServers,
  ],
})
export class UpstreamsModule implements OnModuleInit {
  constructor(
    private readonly servers: ToolServers,
    private readonly policy: PolicyService,
    private readonly upstreams: UpstreamsService,
  ) {}

  onModuleInit(): void {
    this.policy.toolFactsFrom((ctx, tool) => {
      const known = this.upstreams.peekFor(ctx);
      return known
        ? toolFacts(known, tool)
        : this.upstreams.snapshotFor(ctx).then((servers) => toolFacts(servers, tool));
    });
    this.servers.from(async (org) => {
      const { version, servers } = await this.upstreams.snapshot(org);
      return {
        version,
        tools: new Map(servers.map((server) => [server.row.serverId, skillToolsOf(server)])),
        ids: new Map(servers.map(({ row }) => [row.id, row.serverId])),
        declared: new Set(servers.filter(({ row }) => row.source === 'config').map(({ row }) => row.serverId)),
      };
    });
  }
}

function toolFacts({ quarantined }: ServerSnapshot, tool: string) {
  return { quarantined: quarantined.has(tool) };
}
