import { Module, type OnModuleInit } from '@nestjs/common';
import { A2AClientModule } from '../a2a-client/a2a-client.module.js';
import { A2AClientService } from '../a2a-client/a2a-client.service.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { TaskExecutors } from '../tasks/task-executors.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { CallKeeper } from './follow/call-keeper.js';
import { CallReceivers } from './follow/call-receivers.js';
import { ContinuationLogStore } from './storage/continuation-log.store.js';
import { ContinuationController } from './admin/continuation.controller.js';
import { ContinuationService } from './continuation.service.js';
import { ContinuationStore } from './storage/continuation.store.js';
import { ContinuationRetentionSweeper } from './storage/continuation-retention.sweeper.js';
import { ContinuationSweeper } from './follow/continuation.sweeper.js';
import { ContinuationUpdates } from './follow/continuation-updates.js';
import { PushWaiters } from './push/push-waiters.js';
import { PushController } from './push/push.controller.js';
import { PushDoor } from './push/push-door.js';
import { PushSweeper } from './push/push.sweeper.js';
import { PushTokens } from './push/push-tokens.js';
import { RemoteAgentExecutor } from './follow/remote-agent.executor.js';
import { RemoteCancels } from './follow/remote-cancels.js';
import { RemoteFollower } from './follow/remote-follower.js';
import { RemoteMessages } from './follow/remote-messages.js';
import { RemotePushStore } from './push/remote-push.store.js';
import { ToolTasks } from './tool-tasks.js';
import { ThreadAnswerStore } from './threads/thread-answer.store.js';
import { ThreadDeliverer } from './threads/thread-deliverer.js';
import { ThreadPost } from './threads/thread-post.js';
import { ThreadSender } from './threads/thread-sender.js';
import { ThreadSweeper } from './threads/thread.sweeper.js';

/** Module 12: remote tasks that go on after their calls. */
@Module({
  imports: [PolicyModule, RegistryModule, TasksModule, A2AClientModule, UpstreamsModule, WebhooksModule],
  controllers: [ContinuationController, PushController],
  providers: [
    ContinuationStore,
    ContinuationLogStore,
    ContinuationService,
    ContinuationSweeper,
    ContinuationRetentionSweeper,
    ContinuationUpdates,
    RemoteCancels,
    RemoteFollower,
    RemoteMessages,
    RemoteAgentExecutor,
    CallReceivers,
    CallKeeper,
    PushWaiters,
    PushDoor,
    PushSweeper,
    PushTokens,
    RemotePushStore,
    ToolTasks,
    ThreadAnswerStore,
    ThreadDeliverer,
    ThreadPost,
    ThreadSender,
    ThreadSweeper,
  ],
  exports: [ContinuationService, ToolTasks],
})
export class ContinuationsModule implements OnModuleInit {
  constructor(
    private readonly client: A2AClientService,
    private readonly keeper: CallKeeper,
    private readonly executors: TaskExecutors,
    private readonly remote: RemoteAgentExecutor,
  ) {}

  onModuleInit(): void {
    this.client.keepTasksWith(this.keeper);
    this.executors.add(this.remote);
  }
}
