import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { Cursors } from '../platform/http/cursor.js';
import type { Task } from '../protocol/a2a/model.js';
import type { ListParams, TaskPage } from '../protocol/a2a/request/operations.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { LiveTasks } from './lifecycle/live-tasks.js';
import { TaskListStore, type TaskFilter } from './storage/task-list.store.js';
import { TaskEnder } from './run/task-ender.js';
import { isEnd, TaskStreamService } from './task-stream.service.js';
import { noSuchTask } from './task-submit.service.js';
import { configuring, maySee, onTask } from './task-verbs.js';
import { isEnded, taskView, type NumberedEvent, type StoredTask } from './task.types.js';

const stuckMs = 10_000;

/** An event for a stream. An event without `seq` is not in the log, and a stream cannot be resumed from it. */
export type StreamedEvent = Pick<NumberedEvent, 'body'> & { readonly seq?: number };

/** Operations of callers on stored tasks. Without `agent`, the task may belong to any agent. */
@Injectable()
export class TaskService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly lives: LiveTasks,
    private readonly lists: TaskListStore,
    private readonly streams: TaskStreamService,
    private readonly ender: TaskEnder,
    private readonly cursors: Cursors,
  ) {}

  /** Returns a task. Throws `task_not_found`, also for a task of another owner, and `denied`. */
  async get(ctx: CallContext, agent: PublishedAgent | undefined, id: string): Promise<StoredTask> {
    const task = await this.visible(ctx, agent, id);
    return this.verbs.around(onTask(ctx, 'task_read', task), async () => {
      if (isStuck(task, this.lives.step().now)) await this.lives.wake(task.id);
      return task;
    });
  }

  /** Lists the caller's tasks of an agent, newest status first; an admin gets those of the whole org. */
  async list(ctx: CallContext, agent: PublishedAgent, params: ListParams): Promise<TaskPage<Task>> {
    const { contextId, status: state, statusTimestampAfter: since, pageSize, historyLength, includeArtifacts } = params;
    const owner = ctx.principal.role === 'admin' ? undefined : callerOf(ctx.principal);
    const filter: TaskFilter = { org: ctx.org.id, agent: agent.id, owner, contextId, state, since };
    const scope = `a2a-tasks:${JSON.stringify(filter)}`;
    const after = params.pageToken ? this.cursors.decode(scope, params.pageToken, 2) : undefined;
    const selection = {
      after: after as [string, string] | undefined,
      artifacts: includeArtifacts,
      history: historyLength !== 0,
      statusMessage: true,
    };
    const [{ tasks: shown, more }, totalSize] = await Promise.all([
      this.lists.page(filter, pageSize, selection),
      this.lists.count(filter),
    ]);
    const permitted = await Promise.all(shown.map(({ task }) => this.verbs.permits(onTask(ctx, 'task_read', task))));
    const last = shown.at(-1);
    return {
      tasks: shown
        .filter((_, index) => permitted[index])
        .map(({ task }) => taskView(task, { historyLength, artifacts: includeArtifacts })),
      nextPageToken: more && last ? this.cursors.encode(scope, [last.at, last.task.id]) : '',
      pageSize,
      totalSize,
    };
  }

  /**
   * Cancels a task of the caller; policies may read the metadata of the request. The first of cancel, completion and
   * failure wins, and a canceled task does not change any more. Throws `task_not_found`, `task_not_cancelable`,
   * `denied`.
   */
  async cancel(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    id: string,
    metadata: JsonObject = {},
  ): Promise<StoredTask> {
    const task = await this.visible(ctx, agent, id);
    return this.verbs.around({ ...onTask(ctx, 'task_cancel', task), args: metadata }, () =>
      this.ender.cancel(ctx, task),
    );
  }

  /**
   * Yields the log of a task from a number on, or its snapshot and the events after it. Ends with the task. Throws
   * `task_not_found`, `denied`, and `unsupported_operation` for an ended task without `endedToo` and without a number.
   */
  async *subscribe(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    id: string,
    { after, endedToo, signal }: { after?: number; endedToo?: boolean; signal?: AbortSignal },
  ): AsyncGenerator<StreamedEvent, void> {
    const inbox = this.streams.open(id.toLowerCase());
    try {
      const task = await this.visible(ctx, agent, id);
      await this.verbs.around(onTask(ctx, 'task_subscribe', task), () => Promise.resolve());
      inbox.push(task.seq, []);
      if (after !== undefined) {
        const cursor = Math.min(after, task.seq);
        if (isEnded(task) && cursor === task.seq) return; // the client already has every event
        return yield* this.streams.follow(task.id, cursor, inbox, isEnd, signal);
      }
      if (isEnded(task) && !endedToo)
        throw new RialtoError('unsupported_operation', { message: 'the task has ended', data: { taskId: task.id } });
      yield { seq: task.seq, body: { task: taskView(task) } };
      if (!isEnded(task)) yield* this.streams.follow(task.id, task.seq, inbox, isEnd, signal);
    } finally {
      inbox.close();
    }
  }

  /** Runs work of another module on a task as an act of the caller. Throws `denied`. */
  act<Result>(
    ctx: CallContext,
    action: 'push_configure' | 'task_read',
    task: StoredTask,
    work: () => Promise<Result>,
    args: JsonObject = {},
  ): Promise<Result> {
    return this.verbs.around({ ...onTask(ctx, action, task), args }, work);
  }

  /**
   * Throws `denied` when this caller may not configure push notifications for its tasks of an agent. A refusal is
   * recorded as an act; a permission is recorded with the act of the message that carries the configuration.
   */
  async requireConfigurable(ctx: CallContext, agent: PublishedAgent): Promise<void> {
    const call = configuring(ctx, agent);
    if (!(await this.verbs.permits(call))) await this.verbs.around(call, () => Promise.resolve());
  }

  /**
   * Makes a worker run a task now. Returns false when there is nothing to do: it ended, waits for its caller, or is
   * being worked on. @param early also wakes a deferred task.
   */
  async wake(id: string, early = false): Promise<boolean> {
    const task = isUuid(id) ? await this.lives.store.find(id) : undefined;
    if (!task) return false;
    if (early) await this.lives.leases.makeDueNow(task.id);
    return this.lives.wake(task.id);
  }

  /** Fails a task that an operator gave up on, with this text. Throws `conflict` when it has already ended. */
  async giveUp(ctx: CallContext, id: string, text: string): Promise<void> {
    await this.ender.giveUp(ctx, id, text);
  }

  /** A task that this caller may see. Throws `task_not_found`. */
  async visible(ctx: CallContext, agent: PublishedAgent | undefined, id: string): Promise<StoredTask> {
    const task = isUuid(id) ? await this.lives.store.find(id) : undefined;
    if (!task || !maySee(ctx, task) || (agent && task.agentId !== agent.id)) throw noSuchTask(id);
    return task;
  }
}

/** True when a submitted task has waited too long for a worker. A caller that polls it then wakes a worker (AN-56). */
function isStuck({ state, statusAt }: StoredTask, now: number): boolean {
  return state === 'TASK_STATE_SUBMITTED' && now - statusAt > stuckMs;
}
