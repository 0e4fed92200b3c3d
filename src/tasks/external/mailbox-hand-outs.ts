import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { Notices } from '../../platform/bus/notices.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { mailboxLeaseMs } from '../storage/execution-times.js';
import type { LeaseCaller } from './mailbox-caller.decorator.js';
import { MailboxStore } from '../storage/mailbox.store.js';
import type { Claimed } from '../storage/task-lease.store.js';
import type { StoredTask } from '../task.types.js';
import type { Hold } from '../storage/task-writer.js';

/**
 * The way of a task from a mailbox to whoever asked for it. This process holds it until its answer has left, so that a task whose answer
 * does not arrive waits for nobody: neither when the caller goes away nor when this process is killed.
 */
@Injectable()
export class MailboxHandOuts {
  constructor(
    private readonly store: MailboxStore,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** What a task on its way is held by. */
  get hold(): Hold {
    return this.store.hold;
  }

  /** The oldest task that waits; undefined when there is none. */
  take(agentId: string): Promise<Claimed | undefined> {
    return this.store.lease(agentId);
  }

  /** Makes the answer with a task, and settles who holds it once the answer has left or could not. */
  async around<View>(task: StoredTask, { answered }: LeaseCaller, view: () => Promise<View>): Promise<View> {
    const shown = await this.orBack(task, view());
    void answered.then((hasLeft) => this.settle(task, hasLeft));
    return shown;
  }

  /** What comes of a task that was taken; when nothing does, the task waits for the next who asks. */
  async orBack<Value>(task: StoredTask, made: Promise<Value>): Promise<Value> {
    try {
      return await made;
    } catch (error) {
      void this.settle(task, false);
      throw error;
    }
  }

  /** Tries until the lease would be over anyway: the database may be away for a moment. */
  private async settle(task: StoredTask, hasLeft: boolean): Promise<void> {
    for (let pauseMs = 100; ; pauseMs *= 2)
      try {
        await (hasLeft ? this.store.handedOut(task) : this.store.takenBack(task));
        break;
      } catch (err) {
        if (pauseMs > mailboxLeaseMs / 2)
          return this.log.warn({ err, taskId: task.id }, 'a lease is settled only when it ends');
        await sleep(pauseMs, undefined, { ref: false });
      }
    if (!hasLeft) this.notices.tell(undefined, 'mailbox.filled', { agentId: task.agentId });
  }
}
