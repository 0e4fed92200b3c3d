import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskEnder } from './run/task-ender.js';
import { TaskJobs } from './run/task-jobs.js';
import { TaskStore } from './storage/task.store.js';
import { isEnd, TaskStreamService } from './task-stream.service.js';
import { configuring, maySee, onTask } from './task-verbs.js';
import { isEnded, noSuchTask, taskView, type NumberedEvent, type StoredTask } from './task.types.js';

const stuckMs = 10_000;

/** An event for a stream. An event without `seq` is not in the log, and a stream cannot be resumed from it. */
export type StreamedEvent = Pick<NumberedEvent, 'body'> & { readonly seq?: number };

/** Operations of callers on stored tasks. Without `agent`, the task may belong to any agent. */
@Injectable()
export class TaskService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly store: TaskStore,
    private readonly streams: TaskStreamService,
    private readonly ender: TaskEnder,
    private readonly jobs: TaskJobs,
  ) {}

  /** Returns a task. Throws `task_not_found`, also for a task of another owner, and `denied`. */
  async get(ctx: CallContext, agent: PublishedAgent | undefined, id: string): Promise<StoredTask> {
    const task = await this.visible(ctx, agent, id);
    return this.verbs.around(onTask(ctx, 'task_read', task), async () => {
      if (isStuck(task, systemClock.now())) await this.jobs.wake(task.id);
      return task;
    });
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
    const inbox = this.streams.openInbox(id.toLowerCase());
    try {
      const task = await this.visible(ctx, agent, id);
      await this.verbs.around(onTask(ctx, 'task_subscribe', task), () => Promise.resolve());
      inbox.addEvents(task.seq, []);
      if (after !== undefined) {
        const cursor = Math.min(after, task.seq);
        if (isEnded(task) && cursor === task.seq) return; // the client already has every event
        return yield* this.streams.followEvents(task.id, cursor, inbox, isEnd, signal);
      }
      if (isEnded(task) && !endedToo)
        throw new RialtoError('unsupported_operation', { message: 'the task has ended', data: { taskId: task.id } });
      yield { seq: task.seq, body: { task: taskView(task) } };
      if (!isEnded(task)) yield* this.streams.followEvents(task.id, task.seq, inbox, isEnd, signal);
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
    const task = isUuid(id) ? await this.store.find(id) : undefined;
    if (!task) return false;
    return early ? this.jobs.wakeEarly(task.id) : this.jobs.wake(task.id);
  }

  /** Fails a task that an operator gave up on, with this text. Throws `conflict` when it has already ended. */
  async giveUpTask(ctx: CallContext, id: string, text: string): Promise<void> {
    await this.ender.giveUpTask(ctx, id, text);
  }

  /** A task that this caller may see. Throws `task_not_found`. */
  async visible(ctx: CallContext, agent: PublishedAgent | undefined, id: string): Promise<StoredTask> {
    const task = isUuid(id) ? await this.store.find(id) : undefined;
    if (!task || !maySee(ctx, task) || (agent && task.agentId !== agent.id)) throw noSuchTask(id);
    return task;
  }
}

/** True when a submitted task has waited too long for a worker. A caller that polls it then wakes a worker (AN-56). */
function isStuck({ state, statusAt }: StoredTask, now: number): boolean {
  return state === 'TASK_STATE_SUBMITTED' && now - statusAt > stuckMs;
}
