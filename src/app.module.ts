import { Module, type DynamicModule, type OnModuleInit } from '@nestjs/common';
import { A2AClientModule } from './a2a-client/a2a-client.module.js';
import { A2eModule } from './a2e/a2e.module.js';
import { A2AServerModule } from './a2a-server/a2a-server.module.js';
import { ApprovalsModule } from './approvals/approvals.module.js';
import { AuditModule } from './audit/audit.module.js';
import { ContinuationsModule } from './continuations/continuations.module.js';
import { McpBridgeModule } from './mcp-bridge/mcp-bridge.module.js';
import { PlatformModule, type Infrastructure } from './platform/platform.module.js';
import { orgTables } from './org-tables.js';
import { OrgData } from './policy/org-data.js';
import { PolicyModule } from './policy/policy.module.js';
import { RegistryModule } from './registry/registry.module.js';
import { TasksModule } from './tasks/tasks.module.js';
import { UpstreamsModule } from './upstreams/upstreams.module.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

/** Root module; imports the modules of the gateway in order of their dependencies. */
@Module({})
export class AppModule implements OnModuleInit {
  constructor(private readonly orgs: OrgData) {}

  static register(infra: Infrastructure): DynamicModule {
    return {
      module: AppModule,
      imports: [
        PlatformModule.register(infra),
        AuditModule,
        PolicyModule,
        ApprovalsModule,
        RegistryModule,
        TasksModule,
        A2AClientModule,
        UpstreamsModule,
        WebhooksModule,
        ContinuationsModule,
        A2AServerModule,
        McpBridgeModule,
        A2eModule,
      ],
    };
  }

  onModuleInit(): void {
    this.orgs.consistsOf(orgTables);
  }
}
