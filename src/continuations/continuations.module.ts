import { Module, type OnModuleInit } from '@nestjs/common';
import { A2AClientModule } from '../a2a-client/a2a-client.module.js';
import { A2AClientService } from '../a2a-client/a2a-client.service.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { TaskExecutors } from '../tasks/task-executors.service.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { CallKeeper } from './call-keeper.js';
import { ContinuationListStore } from './continuation-list.store.js';
import { ContinuationController } from './continuation.controller.js';
import { ContinuationService } from './continuation.service.js';
import { ContinuationStore } from './continuation.store.js';
import { ContinuationSweeper } from './continuation.sweeper.js';
import { ContinuationUpdates } from './continuation-updates.js';
import { RemoteAgentExecutor } from './remote-agent.executor.js';
import { RemoteFollower } from './remote-follower.js';

/** Room 10: remote work that outlives one call. */
@Module({
  imports: [PolicyModule, RegistryModule, TasksModule, A2AClientModule],
  controllers: [ContinuationController],
  providers: [
    ContinuationStore,
    ContinuationListStore,
    ContinuationService,
    ContinuationSweeper,
    ContinuationUpdates,
    RemoteFollower,
    RemoteAgentExecutor,
    CallKeeper,
  ],
  exports: [ContinuationService],
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
