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
 * Hands tasks from a mailbox to the workers that ask. This process holds the lease until the answer was sent, so a task
 * is not stuck when its answer does not arrive: when the client disconnects, or when this process is killed.
 */
@Injectable()
export class MailboxHandOuts {
  constructor(
    private readonly store: MailboxStore,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** The lease of a task while its answer is being sent. */
  get hold(): Hold {
    return this.store.hold;
  }

  /** Leases the oldest waiting task; undefined when there is none. */
  leaseTask(agentId: string): Promise<Claimed | undefined> {
    return this.store.lease(agentId);
  }

  /**
   * Creates the answer for a task. Gives the lease to the worker when the answer was sent, and releases the task when
   * it was not.
   */
  async handOut<View>(task: StoredTask, { answered }: LeaseCaller, view: () => Promise<View>): Promise<View> {
    const shown = await this.orRelease(task, view());
    void answered.then((hasLeft) => this.storeEnd(task, hasLeft));
    return shown;
  }

  /** Waits for the next step of a leased task; when that fails, releases the task for the next worker. */
  async orRelease<Value>(task: StoredTask, made: Promise<Value>): Promise<Value> {
    try {
      return await made;
    } catch (error) {
      void this.storeEnd(task, false);
      throw error;
    }
  }

  /** Retries until half of the lease is over, because the database may be unavailable for a short time. */
  private async storeEnd(task: StoredTask, hasLeft: boolean): Promise<void> {
    for (let pauseMs = 100; ; pauseMs *= 2)
      try {
        await (hasLeft ? this.store.handedOut(task) : this.store.takenBack(task));
        break;
      } catch (err) {
        if (pauseMs > mailboxLeaseMs / 2)
          return this.log.warn(
            { err, taskId: task.id },
            'could not hand over or release a lease; it stays until it expires',
          );
        await sleep(pauseMs, undefined, { ref: false });
      }
    if (!hasLeft) this.notices.tell(undefined, 'mailbox.filled', { agentId: task.agentId });
  }
}
