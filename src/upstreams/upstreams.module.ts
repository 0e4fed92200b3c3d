import { Module, type OnModuleInit } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { ToolServers } from '../registry/tool-servers.service.js';
import { DeclaredServers } from './declared-servers.service.js';
import { HeldAnswerStore } from './held-answer.store.js';
import { HeldAnswersSweeper } from './held-answers.sweeper.js';
import { HeldCalls } from './held-calls.service.js';
import { McpServerEntity } from './mcp-server.entity.js';
import { UpstreamAdmin } from './upstream-admin.service.js';
import { skillToolsOf } from './registered-server.js';
import { StdioCatalogue } from './stdio-catalogue.js';
import { UnreadServersSweeper } from './unread-servers.sweeper.js';
import { UpstreamPlaces } from './upstream-places.js';
import { UpstreamPool } from './upstream-pool.js';
import { UpstreamTransports } from './upstream-transports.js';
import { UpstreamStore } from './upstream.store.js';
import { UpstreamCalls } from './upstream-calls.service.js';
import { UpstreamTools } from './upstream-tools.service.js';
import { UpstreamsController } from './upstreams.controller.js';
import { UpstreamsService } from './upstreams.service.js';

/** Room 9: MCP servers outside, whose tools, resources and prompts are those of an org. */
@Module({
  imports: [PolicyModule, RegistryModule, TypeOrmModule.forFeature([McpServerEntity])],
  controllers: [UpstreamsController],
  providers: [
    UpstreamTransports,
    UpstreamPool,
    UpstreamStore,
    UpstreamsService,
    HeldCalls,
    HeldAnswerStore,
    HeldAnswersSweeper,
    UpstreamCalls,
    UpstreamTools,
    UpstreamAdmin,
    UpstreamPlaces,
    StdioCatalogue,
    DeclaredServers,
    UnreadServersSweeper,
  ],
  exports: [UpstreamsService, UpstreamCalls, UpstreamTools, UpstreamAdmin, DeclaredServers],
})
export class UpstreamsModule implements OnModuleInit {
  constructor(
    private readonly servers: ToolServers,
    private readonly upstreams: UpstreamsService,
  ) {}

  onModuleInit(): void {
    this.servers.from(async (org) => {
      const { version, servers } = await this.upstreams.snapshot(org);
      return { version, tools: new Map(servers.map((server) => [server.row.serverId, skillToolsOf(server)])) };
    });
  }
}
