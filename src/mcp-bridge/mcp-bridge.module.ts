import { Injectable, Module, type BeforeApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { A2AClientModule } from '../a2a-client/a2a-client.module.js';
import { ContinuationsModule } from '../continuations/continuations.module.js';
import { McpTasks } from './tools/mcp-tasks.js';
import { LlmExecutor } from './executors/llm.executor.js';
import { LlmTools } from './executors/llm-tools.js';
import { ModelClient } from './executors/model-client.js';
import { McpToolExecutor } from './executors/mcp-tool.executor.js';
import { ServerFeatures } from './features/server-features.js';
import { ServerCalls } from './tools/server-calls.js';
import { SkillCalls } from './tools/skill-calls.js';
import { ToolCatalogues } from './tools/tool-catalogues.js';
import { TaskStatusTool } from './tools/task-status-tool.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import type { Notice } from '../kernel/notices.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { McpDispatch } from './door/mcp-dispatch.js';
import { McpDoor } from './door/mcp.door.js';
import { LegacyPeers } from './door/legacy-peers.js';
import { LegacySessions } from './door/legacy-sessions.js';
import { McpEras } from './door/mcp-eras.js';
import { LegacyMcp } from './door/mcp-legacy.js';
import { McpModern, type ChangingList } from './door/mcp-modern.js';
import { McpSessionStore } from './sessions/mcp-session.store.js';
import { McpStreams } from './door/mcp-streams.js';
import { OwnAgentTools } from './tools/own-agent-tools.js';
import { McpSubscriptionStore } from './sessions/mcp-subscription.store.js';
import { ResourceWatches } from './sessions/resource-watches.js';
import { PeerQuestions } from './door/peer-questions.js';
import { ResourceMetadataDoor } from './door/resource-metadata.door.js';
import { RunningCalls } from './door/running-calls.js';
import { ToolDesk } from './tools/tool-desk.js';
import { ToolLists } from './tools/tool-lists.js';
import { ToolRouter } from './tools/tool-router.js';
import { ToolsController } from './tools/tools.controller.js';
import { TaskExecutors } from '../tasks/task-executors.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { UpstreamSubscriptions } from '../upstreams/upstream-subscriptions.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';

const allLists: readonly ChangingList[] = ['tools', 'resources', 'prompts'];

/** Informs streams of the MCP doors about changed lists and resources. */
@Injectable()
class McpListener implements OnModuleInit {
  constructor(
    private readonly streams: McpStreams,
    private readonly modern: McpModern,
    private readonly subscriptions: UpstreamSubscriptions,
    private readonly watches: ResourceWatches,
  ) {}

  onModuleInit(): void {
    this.subscriptions.onUpdated((org, server, uri, caller) => {
      for (const session of this.watches.sessionsWatching(org, server, uri, caller))
        this.streams.tell(session, 'notifications/resources/updated', { uri });
      this.modern.resourceUpdated(org, server, uri, caller);
    });
  }

  @OnNotice('agent.card-changed')
  agentChanged({ orgId }: Notice<'agent.card-changed'>): void {
    this.listsChanged(orgId, ['tools']);
  }

  @OnNotice('published.changed')
  publishedChanged({ orgId }: Notice<'published.changed'>): void {
    this.listsChanged(orgId, ['tools']);
  }

  @OnNotice('upstream.changed')
  upstreamChanged({ orgId }: Notice<'upstream.changed'>): void {
    this.listsChanged(orgId, allLists);
  }

  @OnNotice('upstream.credential-changed')
  credentialChanged({ orgId, caller }: Notice<'upstream.credential-changed'>): void {
    this.listsChanged(orgId, allLists, caller);
  }

  @OnNotice('upstream.offer-changed')
  offerChanged({ orgId, caller }: Notice<'upstream.offer-changed'>): void {
    this.listsChanged(orgId, allLists, caller);
  }

  @OnNotice('policy.changed')
  policyChanged({ orgId }: Notice<'policy.changed'>): void {
    this.listsChanged(orgId, allLists);
  }

  /** The org may now list other names. */
  @OnNotice('org.changed')
  orgChanged({ orgId }: Notice<'org.changed'>): void {
    this.listsChanged(orgId, ['tools']);
  }

  /** @param caller the only caller that is notified; all callers when absent. */
  private listsChanged(org: string, lists: readonly ChangingList[], caller?: string): void {
    for (const list of lists) this.streams.sendNotification(org, `notifications/${list}/list_changed`, caller);
    this.modern.listsChanged(org, lists, caller);
  }
}

/** Sweeper that deletes sessions without a request for one week. */
@Injectable()
@Sweeps('mcp.sessions')
class McpSessionSweeper implements Sweeper {
  readonly everyMs = 3_600_000;

  constructor(private readonly sessions: McpSessionStore) {}

  sweep(): Promise<void> {
    return this.sessions.dropIdle();
  }
}

/** Registers the executors for published agents that use tools and models. */
@Injectable()
class AgentExecutors implements OnModuleInit {
  constructor(
    private readonly executors: TaskExecutors,
    private readonly tool: McpToolExecutor,
    private readonly llm: LlmExecutor,
  ) {}

  onModuleInit(): void {
    this.executors.add(this.tool);
    this.executors.add(this.llm);
  }
}

/**
 * Module for MCP clients. Each agent skill and each tool of an MCP server is a tool; resources and prompts are those
 * of MCP servers. Also contains the executors for published agents that use tools or models.
 */
@Module({
  imports: [A2AClientModule, ContinuationsModule, PolicyModule, RegistryModule, TasksModule, UpstreamsModule],
  controllers: [ToolsController],
  providers: [
    ToolDesk,
    ResourceMetadataDoor,
    McpDoor,
    McpDispatch,
    McpEras,
    LegacyMcp,
    LegacySessions,
    LegacyPeers,
    PeerQuestions,
    ResourceWatches,
    McpSubscriptionStore,
    McpModern,
    McpSessionStore,
    McpStreams,
    RunningCalls,
    OwnAgentTools,
    McpTasks,
    TaskStatusTool,
    ToolLists,
    ToolRouter,
    SkillCalls,
    ServerFeatures,
    ServerCalls,
    ToolCatalogues,
    McpToolExecutor,
    AgentExecutors,
    LlmExecutor,
    LlmTools,
    ModelClient,
    McpListener,
    McpSessionSweeper,
  ],
})
export class McpBridgeModule implements OnModuleInit, BeforeApplicationShutdown {
  constructor(
    private readonly front: FrontDoor,
    private readonly door: McpDoor,
    private readonly modern: McpModern,
    private readonly metadata: ResourceMetadataDoor,
  ) {}

  onModuleInit(): void {
    for (const route of [...this.door.routes(), ...this.metadata.routes()]) this.front.add(route);
  }

  /** Closes the streams before the server closes, because the server waits for every open answer. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.modern.close();
  }
}
