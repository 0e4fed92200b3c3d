import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { isUuid } from '../../kernel/ids.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { ContextService } from '../../policy/context.service.js';
import { wordOf } from '../../protocol/a2a/states.js';
import { PublishedService } from '../../registry/published.service.js';
import { ReportedTaskStore, type ReportedTask } from '../storage/reported-task.store.js';
import { maySee, workerFor } from '../task-verbs.js';
import { noSuchTask, type StoredTask } from '../task.types.js';
import type { ExecutionEvent, ReportView } from './execution-events.js';
import type { Reporter } from './execution.guard.js';
import { idsOf, ReportApplier } from './report-applier.js';

/** Takes reports about tasks from the external workers or services that run them. */
@Injectable()
export class Executions {
  constructor(
    private readonly verbs: VerbBus,
    private readonly contexts: ContextService,
    private readonly published: PublishedService,
    private readonly tasks: ReportedTaskStore,
    private readonly reports: ReportApplier,
  ) {}

  /**
   * Applies all events or none, each id at most once. Throws `task_not_found`, also for a task of another owner,
   * `denied`, `rate_limited`, and `conflict` for a task that has ended, or for a lease that is over.
   */
  async report(reporter: Reporter, id: string, events: readonly ExecutionEvent[]): Promise<ReportView> {
    const { task, applied } = await this.requireReportable(reporter, id, events);
    if ('ctx' in reporter)
      return this.verbs.around(reportAct(reporter.ctx, task), async () =>
        reportView(await this.reports.applyEvents(task, events, { applied })),
      );
    const agent = (await this.published.byId(task.agentId)) ?? { id: task.agentId, org: { id: task.orgId, slug: '' } };
    this.contexts.admit(workerFor(agent, reporter.requestId));
    return reportView(await this.reports.applyEvents(task, events, { scope: reporter, applied }));
  }

  private async requireReportable(
    reporter: Reporter,
    id: string,
    events: readonly ExecutionEvent[],
  ): Promise<ReportedTask> {
    const found = isUuid(id) ? await this.tasks.find(id, idsOf(events)) : undefined;
    const mayReport =
      found && ('ctx' in reporter ? maySee(reporter.ctx, found.task) : reporter.taskId === found.task.id);
    if (!mayReport) throw noSuchTask(id);
    return found;
  }
}

/** The act of a report with a credential of the org, in place of the worker: only an administrator may do it. */
function reportAct(ctx: CallContext, task: StoredTask): VerbCall {
  return {
    ctx,
    verb: 'execution.report',
    action: 'admin_write',
    resource: { type: 'Org', id: ctx.org.slug },
    args: { agent: task.agentName, taskId: task.id },
    sessionId: task.id,
  };
}

function reportView({ id, state, seq }: StoredTask): ReportView {
  return { taskId: id, state: wordOf(state), seq };
}
