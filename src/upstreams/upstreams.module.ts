import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DeclaredServers } from './declared-servers.service.js';
import { HeldAnswerStore } from './held-answer.store.js';
import { HeldAnswersSweeper } from './held-answers.sweeper.js';
import { HeldCalls } from './held-calls.service.js';
import { McpServerEntity } from './mcp-server.entity.js';
import { UpstreamAdmin } from './upstream-admin.service.js';
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
  imports: [TypeOrmModule.forFeature([McpServerEntity])],
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
export class UpstreamsModule {}
