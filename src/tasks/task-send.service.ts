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

/** Sends messages to agents of ours and waits for what their caller wants to see. */
@Injectable()
export class TaskSendService {
  constructor(
    private readonly submits: TaskSubmitService,
    private readonly streams: TaskStreamService,
    private readonly runner: TaskRunner,
  ) {}

  /**
   * The task as it is when it ended, waits for its caller, or `waitMs` or this process is over, which its metadata then says (RY-13); at once
   * with `returnImmediately`. Throws as TaskSubmitService.submit does.
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
    const { task, late } = await this.settled(accepted, waitMs, gone);
    const view = taskView(task, { historyLength });
    return { task: late ? { ...view, metadata: { ...view.metadata, partial: true } } : view };
  }

  /** The events of a message: its task first, then what happens to it, until it is answered; or the one message that is the answer. */
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
    const { task, isNew, inbox = this.streams.open(task.id) } = accepted;
    if (isNew) return yield* this.streams.follow(task.id, 0, inbox, isAnswer, signal);
    try {
      yield { seq: task.seq, body: { task: taskView(task) } };
      if (!isEnded(task)) yield* this.streams.follow(task.id, task.seq, inbox, isAnswer, signal);
    } finally {
      inbox.close();
    }
  }

  /** A task as it is when it ended, waits for its caller, or the patience or this process is over. */
  async settledWithin(task: StoredTask, waitMs: number, gone?: () => AbortSignal): Promise<StoredTask> {
    const patience = timeoutSignal(waitMs, [this.runner.over, gone?.()]);
    try {
      return await this.streams.settled(task, patience.signal);
    } finally {
      patience.end();
    }
  }

  private async settled(
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
