import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { timeoutSignal } from '../kernel/abort.js';
import type { Message, Task } from '../protocol/a2a/model.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { isAnswer, isSettled, TaskStreamService } from './task-stream.service.js';
import { TaskRunner } from './run/task.runner.js';
import { TaskSubmitService, type Accepted, type Submission } from './task-submit.service.js';
import type { StreamedEvent } from './task.service.js';
import { isEnded, taskView, type StoredTask } from './task.types.js';

export type SentMessage = Pick<Submission, 'params' | 'rows' | 'facts' | 'onReplay'>;

/** Sends messages to published agents and waits for the result that the caller asked for. */
@Injectable()
export class TaskSendService {
  constructor(
    private readonly submits: TaskSubmitService,
    private readonly streams: TaskStreamService,
    private readonly runner: TaskRunner,
  ) {}

  /**
   * Sends a message and waits until the task ends, waits for its caller, `waitMs` is over, or this process stops. In
   * the last two cases the metadata of the task has `partial: true` (RY-13). Does not wait with `returnImmediately`.
   * Throws the errors of TaskSubmitService.submit.
   */
  async send(
    ctx: CallContext,
    agent: PublishedAgent,
    sent: SentMessage,
    { waitMs, gone }: { waitMs: number; gone?: () => AbortSignal },
  ): Promise<{ task: Task } | { message: Message }> {
    const { historyLength, returnImmediately } = sent.params;
    const accepted = await this.submits.submit(ctx, agent, { waits: !returnImmediately, ...sent });
    if ('reply' in accepted) return { message: accepted.reply };
    if (returnImmediately) return { task: taskView(accepted.task, { historyLength }) };
    const { task, late } = await this.waitForResult(accepted, waitMs, gone);
    const view = taskView(task, { historyLength });
    return { task: late ? { ...view, metadata: { ...view.metadata, partial: true } } : view };
  }

  /**
   * Sends a message and yields its events: the task first, then its changes until the message is answered; or only the
   * reply message when no task was made.
   */
  async *stream(
    ctx: CallContext,
    agent: PublishedAgent,
    sent: SentMessage,
    signal: AbortSignal,
  ): AsyncGenerator<StreamedEvent, void> {
    const accepted = await this.submits.submit(ctx, agent, { waits: true, follows: true, ...sent });
    if ('reply' in accepted) {
      yield { body: { message: accepted.reply } };
      return;
    }
    const { task, isNew, inbox = this.streams.openInbox(task.id) } = accepted;
    if (isNew) return yield* this.streams.followEvents(task.id, 0, inbox, isAnswer, signal);
    try {
      yield { seq: task.seq, body: { task: taskView(task) } };
      if (!isEnded(task)) yield* this.streams.followEvents(task.id, task.seq, inbox, isAnswer, signal);
    } finally {
      inbox.close();
    }
  }

  /**
   * Waits until the task ends, waits for its caller, `waitMs` is over, or this process stops; returns the current task.
   */
  async settledWithin(task: StoredTask, waitMs: number, gone?: () => AbortSignal): Promise<StoredTask> {
    const timeout = timeoutSignal(waitMs, [this.runner.over, gone?.()]);
    try {
      return await this.streams.waitUntilSettled(task, timeout.signal);
    } finally {
      timeout.end();
    }
  }

  private async waitForResult(
    { task, run }: Extract<Accepted, { task: StoredTask }>,
    waitMs: number,
    gone?: () => AbortSignal,
  ): Promise<{ task: StoredTask; late: boolean }> {
    if (run?.isOver && isSettled(run.live.task.state)) return { task: run.live.task, late: false };
    if (!run && isSettled(task.state)) return { task, late: false };
    const now = await this.settledWithin(task, waitMs, gone);
    return { task: now, late: !isSettled(now.state) };
  }
}
