import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { Notices } from '../../platform/bus/notices.js';
import { mailboxWaitMs } from '../execution-times.js';
import { MailboxStore } from '../mailbox.store.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';

/**
 * The work done by whoever fetches it, e.g. an agent behind a router that nobody can call. A run only puts the task into its
 * mailbox and says so; one that lies there for a day fails.
 */
@Injectable()
export class MailboxExecutor implements TaskExecutor {
  readonly kind = 'mailbox';
  /** Who fetches is woken after the run, and then the row has to be there. */
  readonly pure = false;

  constructor(
    private readonly notices: Notices,
    private readonly boxes: MailboxStore,
  ) {}

  async *execute({ task }: TaskRun): AsyncGenerator<TaskUpdate, void> {
    // Whoever claims it first puts it in; later ones come to see how long it lies there.
    const lookAgainMs = task.epoch <= 1 ? mailboxWaitMs : await this.boxes.leftMs(task.id);
    if (lookAgainMs <= 0) throw new RialtoError('remote_timeout', { message: 'nobody fetched the task within a day' });
    yield { deferred: { lookAgainMs } };
  }

  rested({ agent }: Pick<TaskRun, 'agent'>): void {
    this.notices.tell(undefined, 'mailbox.filled', { agentId: agent.id });
  }
}
