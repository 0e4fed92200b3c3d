import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { Notices } from '../../platform/bus/notices.js';
import { mailboxWaitMs } from '../execution-times.js';
import { MailboxStore } from '../mailbox.store.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';

/**
 * The work done by whoever fetches it, e.g. an agent behind a router that nobody can call. A task is born in its mailbox, so that
 * they are fetched in the order they came in; a run only looks how long one lies there, and fails it after a day.
 */
@Injectable()
export class MailboxExecutor implements TaskExecutor {
  readonly kind = 'mailbox';
  readonly pure = false;
  readonly parkedMs = mailboxWaitMs;

  constructor(
    private readonly notices: Notices,
    private readonly boxes: MailboxStore,
  ) {}

  async *execute({ task }: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const lookAgainMs = await this.boxes.leftMs(task.id);
    if (lookAgainMs <= 0) throw new RialtoError('remote_timeout', { message: 'nobody fetched the task within a day' });
    yield { deferred: { lookAgainMs } };
  }

  rested({ agent }: Pick<TaskRun, 'agent'>): void {
    this.notices.tell(undefined, 'mailbox.filled', { agentId: agent.id });
  }
}
