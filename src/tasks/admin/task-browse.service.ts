import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Page } from '../../platform/http/cursor.js';
import { stateOf, wordOf } from '../../protocol/a2a/states.js';
import { PublishedService } from '../../registry/published.service.js';
import type { TaskDetail, TaskQuery, TaskSummary } from './task-browse.types.js';
import { TaskPages } from '../storage/task-pages.js';
import { TaskService } from '../task.service.js';
import { TaskStore } from '../storage/task.store.js';
import { taskView, type StoredTask } from '../task.types.js';

/**
 * Lists, shows and cancels tasks for the admin API: an admin sees every task of the org, other callers see their own.
 */
@Injectable()
export class TaskBrowseService {
  constructor(
    private readonly acts: AdminActs,
    private readonly tasks: TaskService,
    private readonly store: TaskStore,
    private readonly pages: TaskPages,
    private readonly published: PublishedService,
  ) {}

  /** Lists tasks, newest status first. Throws `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { agent: name, state, contextId, limit, cursor }: TaskQuery): Promise<Page<TaskSummary>> {
    return this.acts.read(ctx, 'task.list', async () => {
      const { agents } = await this.published.snapshot(ctx.org.id);
      const agent = name === undefined ? undefined : agents.find((one) => one.name === name || one.id === name)?.id;
      if (name !== undefined && agent === undefined) return { items: [], nextCursor: null };
      const owner = ctx.principal.role === 'admin' ? undefined : callerOf(ctx.principal);
      const filter = { org: ctx.org.id, agent, owner, contextId, state: state && stateOf(state) };
      const selection = { artifacts: false, history: false, statusMessage: false };
      const { tasks, nextCursor } = await this.pages.readPage('tasks', filter, { limit, cursor, ...selection });
      return { items: tasks.map(summaryOf), nextCursor: nextCursor ?? null };
    });
  }

  /** Returns one task with its log. Throws `not_found`, also for a task of another owner. */
  get(ctx: CallContext, id: string): Promise<TaskDetail> {
    return this.acts.read(ctx, 'task.get', async () => {
      const task = await this.visible(ctx, id);
      const events = await this.store.eventsAfter(task.id, 0);
      const log = events.map(({ seq, body }) => ({ seq, event: body }));
      return { ...summaryOf(task), task: taskView(task), log };
    });
  }

  /** Cancels a task. Throws `not_found`, `task_not_cancelable`, `denied`. */
  async cancel(ctx: CallContext, id: string): Promise<TaskSummary> {
    return summaryOf(await this.tasks.cancel(ctx, undefined, (await this.visible(ctx, id)).id));
  }

  private async visible(ctx: CallContext, id: string): Promise<StoredTask> {
    try {
      return await this.tasks.visible(ctx, undefined, id);
    } catch (error) {
      if (RialtoError.from(error).code !== 'task_not_found') throw error;
      throw new RialtoError('not_found', { message: 'no such task' });
    }
  }
}

function summaryOf(task: StoredTask): TaskSummary {
  const { id, agentName: agent, contextId, state, principal, trustTier, seq, statusAt } = task;
  return {
    id,
    agent,
    contextId,
    state: wordOf(state) as TaskSummary['state'],
    owner: { kind: principal.kind, id: principal.id },
    trustTier,
    events: seq,
    statusAt: new Date(statusAt).toISOString(),
  };
}
