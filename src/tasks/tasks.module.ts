import { Module, type OnModuleInit } from '@nestjs/common';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { EarlierMessages } from './earlier-messages.js';
import { TaskChanges } from './lifecycle/task-changes.js';
import { MailboxTasks } from './external/mailbox-tasks.js';
import { ReportApplier } from './external/report-applier.js';
import { TaskJobs } from './run/task-jobs.js';
import { TaskClaimer } from './run/task-claimer.js';
import { TaskAdmission } from './run/task-admission.js';
import { TaskStarter } from './run/task-starter.js';
import { SubmissionChecks } from './run/submission-checks.js';
import { TaskIntake } from './run/task-intake.js';
import { TaskListService } from './task-list.service.js';
import { TaskPages } from './storage/task-pages.js';
import { EventSinks } from './event-sinks.js';
import { ConformanceExecutor } from './executors/conformance.executor.js';
import { EchoExecutor } from './executors/echo.executor.js';
import { RoutesExecutor } from './executors/routes.executor.js';
import { HttpCalls } from './executors/http-calls.js';
import { HttpExecutor } from './executors/http.executor.js';
import { MailboxExecutor } from './executors/mailbox.executor.js';
import { ExecutionTokens } from './execution-tokens.js';
import { ExecutionsController } from './external/executions.controller.js';
import { Executions } from './external/executions.js';
import { ConversationStore } from './storage/conversation.store.js';
import { IdempotencyStore } from './storage/idempotency.store.js';
import { MailboxWaiters } from './external/mailbox-waiters.js';
import { MailboxHandOuts } from './external/mailbox-hand-outs.js';
import { MailboxController } from './external/mailbox.controller.js';
import { MailboxService } from './external/mailbox.service.js';
import { MailboxStore } from './storage/mailbox.store.js';
import { ReportedTaskStore } from './storage/reported-task.store.js';
import { TaskAdoption } from './task-adoption.js';
import { TaskBrowseService } from './admin/task-browse.service.js';
import { ConversationController } from './admin/conversation.controller.js';
import { ConversationService } from './admin/conversation.service.js';
import { TaskController } from './admin/task.controller.js';
import { TaskExecuteProcessor } from './run/task-execute.processor.js';
import { TaskExecutors } from './task-executors.js';
import { TaskFeed } from './lifecycle/task-feed.js';
import { TaskLeases } from './storage/task-lease.store.js';
import { TaskLogService } from './task-log.service.js';
import { TaskListStore } from './storage/task-list.store.js';
import { MessageChecks } from './run/message-checks.js';
import { TaskQuota } from './run/task-quota.js';
import { TaskRunner } from './run/task.runner.js';
import { TaskSendService } from './task-send.service.js';
import { TaskService } from './task.service.js';
import { TaskStore } from './storage/task.store.js';
import { TaskStreamService } from './task-stream.service.js';
import { TaskSubmitService } from './task-submit.service.js';
import { TaskEnder } from './run/task-ender.js';
import { TaskLifetimeSweeper } from './run/task-lifetime.sweeper.js';
import { TaskRetentionStore } from './storage/task-retention.store.js';
import { TaskRetentionSweeper } from './run/task-retention.sweeper.js';
import { TaskSweeper } from './run/task.sweeper.js';
import { TaskWatchStore } from './storage/task-watch.store.js';
import { TaskWatchSweeper } from './run/task-watch.sweeper.js';
import { TaskWriter } from './storage/task-writer.js';
import { WorkOrders } from './external/work-orders.js';

/** Tasks of published agents: their storage, log, runs and external workers. */
@Module({
  imports: [PolicyModule, RegistryModule],
  controllers: [TaskController, ConversationController, ExecutionsController, MailboxController],
  providers: [
    EventSinks,
    TaskWriter,
    TaskStore,
    TaskListStore,
    TaskPages,
    TaskLeases,
    IdempotencyStore,
    TaskFeed,
    TaskStreamService,
    TaskLogService,
    TaskChanges,
    TaskExecutors,
    TaskRunner,
    TaskAdmission,
    TaskClaimer,
    TaskJobs,
    TaskStarter,
    TaskIntake,
    SubmissionChecks,
    EarlierMessages,
    TaskQuota,
    MessageChecks,
    TaskService,
    TaskListService,
    TaskSendService,
    TaskBrowseService,
    ConversationService,
    ConversationStore,
    TaskSubmitService,
    TaskExecuteProcessor,
    TaskSweeper,
    TaskLifetimeSweeper,
    TaskRetentionStore,
    TaskRetentionSweeper,
    TaskWatchStore,
    TaskWatchSweeper,
    TaskEnder,
    TaskAdoption,
    ExecutionTokens,
    WorkOrders,
    ReportApplier,
    Executions,
    MailboxStore,
    ReportedTaskStore,
    MailboxWaiters,
    MailboxHandOuts,
    MailboxTasks,
    MailboxService,
    EchoExecutor,
    ConformanceExecutor,
    HttpCalls,
    HttpExecutor,
    MailboxExecutor,
  ],
  exports: [
    TaskService,
    TaskListService,
    EarlierMessages,
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
    const own = [this.echo, this.conformance, this.http, this.mailbox, new RoutesExecutor(this.executors)];
    for (const executor of own) this.executors.add(executor);
  }
}
