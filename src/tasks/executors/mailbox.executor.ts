import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { Notices } from '../../platform/bus/notices.js';
import { mailboxWaitMs } from '../storage/execution-times.js';
import { MailboxStore } from '../storage/mailbox.store.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';

/**
 * Runs tasks that an external worker fetches, e.g. an agent behind a router that accepts no connections. The commit
 * that accepts a task puts it into the mailbox, so tasks are fetched in the order of acceptance. A run fails a task
 * that was not fetched within a day.
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
    if (lookAgainMs <= 0)
      throw new RialtoError('remote_timeout', { message: 'no worker fetched the task within a day' });
    yield { deferred: { lookAgainMs } };
  }

  rested({ agent }: Pick<TaskRun, 'agent'>): void {
    this.notices.tell(undefined, 'mailbox.filled', { agentId: agent.id });
  }
}
