import { Module, type OnModuleInit } from '@nestjs/common';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { EventSinks } from './event-sinks.js';
import { ConformanceExecutor } from './executors/conformance.executor.js';
import { EchoExecutor } from './executors/echo.executor.js';
import { HttpCalls } from './executors/http-calls.js';
import { HttpExecutor } from './executors/http.executor.js';
import { MailboxExecutor } from './executors/mailbox.executor.js';
import { ExecutionTokens } from './execution-tokens.js';
import { ExecutionsController } from './external/executions.controller.js';
import { Executions } from './external/executions.js';
import { IdempotencyStore } from './storage/idempotency.store.js';
import { LiveTasks } from './lifecycle/live-tasks.js';
import { MailboxWaiters } from './external/mailbox-waiters.js';
import { MailboxHandOuts } from './external/mailbox-hand-outs.js';
import { MailboxController } from './external/mailbox.controller.js';
import { MailboxService } from './external/mailbox.service.js';
import { MailboxStore } from './storage/mailbox.store.js';
import { TaskAdoption } from './task-adoption.js';
import { TaskBrowseService } from './admin/task-browse.service.js';
import { TaskController } from './admin/task.controller.js';
import { TaskExecuteProcessor } from './run/task-execute.processor.js';
import { TaskExecutors } from './task-executors.js';
import { TaskFeed } from './lifecycle/task-feed.js';
import { TaskLeases } from './storage/task-lease.store.js';
import { TaskLogService } from './task-log.service.js';
import { TaskListStore } from './storage/task-list.store.js';
import { TaskQuota } from './run/task-quota.js';
import { TaskRunner } from './run/task.runner.js';
import { TaskSendService } from './task-send.service.js';
import { TaskService } from './task.service.js';
import { TaskStore } from './storage/task.store.js';
import { TaskStreamService } from './task-stream.service.js';
import { TaskSubmitService } from './task-submit.service.js';
import { TaskEnder } from './run/task-ender.js';
import { TaskLifetimeSweeper } from './run/task-lifetime.sweeper.js';
import { TaskRetentionSweeper } from './run/task-retention.sweeper.js';
import { TaskSweeper } from './run/task.sweeper.js';
import { TaskWatchStore } from './storage/task-watch.store.js';
import { TaskWatchSweeper } from './run/task-watch.sweeper.js';
import { TaskWriter } from './storage/task-writer.js';
import { WorkOrders } from './external/work-orders.js';

/** Tasks of published agents: their storage, log, runs and external workers. */
@Module({
  imports: [PolicyModule, RegistryModule],
  controllers: [TaskController, ExecutionsController, MailboxController],
  providers: [
    EventSinks,
    TaskWriter,
    TaskStore,
    TaskListStore,
    TaskLeases,
    IdempotencyStore,
    TaskFeed,
    TaskStreamService,
    TaskLogService,
    LiveTasks,
    TaskExecutors,
    TaskRunner,
    TaskQuota,
    TaskService,
    TaskSendService,
    TaskBrowseService,
    TaskSubmitService,
    TaskExecuteProcessor,
    TaskSweeper,
    TaskLifetimeSweeper,
    TaskRetentionSweeper,
    TaskWatchStore,
    TaskWatchSweeper,
    TaskEnder,
    TaskAdoption,
    ExecutionTokens,
    WorkOrders,
    Executions,
    MailboxStore,
    MailboxWaiters,
    MailboxHandOuts,
    MailboxService,
    EchoExecutor,
    ConformanceExecutor,
    HttpCalls,
    HttpExecutor,
    MailboxExecutor,
  ],
  exports: [
    TaskService,
    TaskSendService,
    TaskSubmitService,
    TaskStreamService,
    TaskExecutors,
    TaskAdoption,
    TaskLogService,
    EventSinks,
  ],
})
export class TasksModule implements OnModuleInit {
  constructor(
    private readonly executors: TaskExecutors,
    private readonly echo: EchoExecutor,
    private readonly conformance: ConformanceExecutor,
    private readonly http: HttpExecutor,
    private readonly mailbox: MailboxExecutor,
  ) {}

  onModuleInit(): void {
    for (const executor of [this.echo, this.conformance, this.http, this.mailbox]) this.executors.add(executor);
  }
}
