import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { LiveTasks } from '../lifecycle/live-tasks.js';
import { applyUpdate, cancelTask, type Moved, type Step } from '../lifecycle/task.lifecycle.js';
import { TaskRunner } from './task.runner.js';
import { isEnded, type StoredTask } from '../task.types.js';

/**
 * Most attempts against a task that changes at the same time; an attempt fails only when another change was committed.
 */
const maxTries = 20;

/** Ends tasks from outside of their run, in any process: the first terminal state wins, and the run stops. */
@Injectable()
export class TaskEnder {
  constructor(
    private readonly lives: LiveTasks,
    private readonly runner: TaskRunner,
  ) {}

  /** Cancels a task; a canceled task stays as it is. Throws `task_not_cancelable` for another terminal state. */
  async cancel(ctx: CallContext, task: StoredTask): Promise<StoredTask> {
    const ended = await this.move(task, cancelTask);
    if (ended !== task) await this.stopWork(ctx, ended);
    return ended;
  }

  /** Applies a terminal update. Throws `unsupported_operation` when the task has already ended. */
  async end(id: string, update: Parameters<typeof applyUpdate>[1]): Promise<void> {
    const task = await this.lives.store.find(id);
    if (!task) return;
    const ended = await this.move(task, (from, step) => applyUpdate(from, update, step));
    this.lives.feed.tellCanceled(ended);
  }

  /**
   * Fails a task with this text, and notifies its external worker. Throws `conflict` when the task has already ended.
   */
  async giveUp(ctx: CallContext, id: string, text: string): Promise<void> {
    const task = await this.lives.store.find(id);
    if (!task || isEnded(task))
      throw new RialtoError('conflict', { message: 'the task has ended', data: { taskId: id } });
    const update: Parameters<typeof applyUpdate>[1] = {
      status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text }] } },
    };
    const ended = await this.move(task, (from, step) => applyUpdate(from, update, step));
    await this.stopWork(ctx, ended);
  }

  private async move(seen: StoredTask, step: (from: StoredTask, step: Step) => Moved | undefined): Promise<StoredTask> {
    let from = seen;
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const moved = step(from, this.lives.step());
      if (!moved) return from;
      // The new epoch makes later writes of the current holder fail (I8).
      const task = { ...moved.task, epoch: from.epoch + 1 };
      if (await this.lives.commit({ task, from, events: [moved.event], hold: {} })) {
        this.lives.feed.tell(task, [moved.event]);
        return task;
      }
      from = (await this.lives.store.find(seen.id)) ?? from;
    }
    throw new RialtoError('unavailable', { message: 'the task changes too fast; try again' });
  }

  /** Stops the run in the process that works on the task; this process tells the executor to end its outside work. */
  private async stopWork(ctx: CallContext, task: StoredTask): Promise<void> {
    this.lives.feed.tellCanceled(task);
    await this.runner.abandon(ctx, task);
  }
}
