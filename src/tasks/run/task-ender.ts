import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import { TaskFeed } from '../lifecycle/task-feed.js';
import { applyUpdate, cancelTask, type Moved, type Step } from '../lifecycle/task.lifecycle.js';
import { TaskStore } from '../storage/task.store.js';
import { TaskRunner } from './task.runner.js';
import { isEnded, type StoredTask } from '../task.types.js';

/** Ends tasks from outside of their run, in any process: the first terminal state wins, and the run stops. */
@Injectable()
export class TaskEnder {
  constructor(
    private readonly changes: TaskChanges,
    private readonly store: TaskStore,
    private readonly feed: TaskFeed,
    private readonly runner: TaskRunner,
  ) {}

  /** Cancels a task; a canceled task stays as it is. Throws `task_not_cancelable` for another terminal state. */
  async cancel(ctx: CallContext, task: StoredTask): Promise<StoredTask> {
    const ended = await this.move(task, cancelTask);
    if (ended !== task) await this.stopWork(ctx, ended);
    return ended;
  }

  /** Applies a terminal update. Throws `unsupported_operation` when the task has already ended. */
  async endTask(id: string, update: Parameters<typeof applyUpdate>[1]): Promise<void> {
    const task = await this.store.find(id);
    if (!task) return;
    const ended = await this.move(task, (from, step) => applyUpdate(from, update, step));
    this.feed.notifyCanceled(ended);
  }

  /**
   * Fails a task with this text, and notifies its external worker. Throws `conflict` when the task has already ended.
   */
  async giveUpTask(ctx: CallContext, id: string, text: string): Promise<void> {
    const task = await this.store.find(id);
    if (!task || isEnded(task))
      throw new RialtoError('conflict', { message: 'the task has ended', data: { taskId: id } });
    const update: Parameters<typeof applyUpdate>[1] = {
      status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text }] } },
    };
    const ended = await this.move(task, (from, step) => applyUpdate(from, update, step));
    await this.stopWork(ctx, ended);
  }

  private move(seen: StoredTask, step: (from: StoredTask, step: Step) => Moved | undefined): Promise<StoredTask> {
    return this.changes.changeNewest(seen, async (from) => {
      const moved = step(from, this.changes.step());
      if (!moved) return from;
      // The new epoch makes later writes of the current holder fail (I8).
      const task = { ...moved.task, epoch: from.epoch + 1 };
      const change = { task, from, events: [moved.event], hold: {} };
      return (await this.changes.commitAndNotify(change)) ? task : undefined;
    });
  }

  /** Stops the run in the process that works on the task; this process tells the executor to end its outside work. */
  private async stopWork(ctx: CallContext, task: StoredTask): Promise<void> {
    this.feed.notifyCanceled(task);
    await this.runner.abandon(ctx, task);
  }
}
