import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { ReadShares } from '../platform/http/shares/read-shares.js';
import type { Task } from '../protocol/a2a/model.js';
import type { ListParams, TaskPage } from '../protocol/a2a/request/operations.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskListStore, type TaskFilter } from './storage/task-list.store.js';
import { TaskPages } from './storage/task-pages.js';
import { onTask } from './task-verbs.js';
import { taskView } from './task.types.js';

/** Lists the tasks of published agents for A2A clients. */
@Injectable()
export class TaskListService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly pages: TaskPages,
    private readonly lists: TaskListStore,
    private readonly reads: ReadShares,
  ) {}

  /**
   * Lists the caller's tasks of an agent, newest status first; an admin gets those of the whole org. Throws
   * `invalid_params` for a token of another list, and `rate_limited`.
   */
  list(ctx: CallContext, agent: PublishedAgent, params: ListParams): Promise<TaskPage<Task>> {
    return this.reads.around(ctx, 2, () => this.readList(ctx, agent, params));
  }

  private async readList(ctx: CallContext, agent: PublishedAgent, params: ListParams): Promise<TaskPage<Task>> {
    const { contextId, status: state, statusTimestampAfter: since, pageSize, historyLength, includeArtifacts } = params;
    const owner = ctx.principal.role === 'admin' ? undefined : callerOf(ctx.principal);
    const filter: TaskFilter = { org: ctx.org.id, agent: agent.id, owner, contextId, state, since };
    const selection = { artifacts: includeArtifacts, history: historyLength !== 0, statusMessage: true };
    const [page, totalSize] = await Promise.all([
      this.pages.readPage('a2a-tasks', filter, { limit: pageSize, cursor: params.pageToken, ...selection }),
      this.lists.countTasks(filter),
    ]);
    const permitted = await Promise.all(page.tasks.map((task) => this.verbs.permits(onTask(ctx, 'task_read', task))));
    return {
      tasks: page.tasks
        .filter((_, index) => permitted[index])
        .map((task) => taskView(task, { historyLength, artifacts: includeArtifacts })),
      nextPageToken: page.nextCursor ?? '',
      pageSize,
      totalSize,
    };
  }
}
