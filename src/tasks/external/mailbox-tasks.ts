import { Injectable } from '@nestjs/common';
import type { Principal } from '../../kernel/call-context.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { TaskAgents } from '../../registry/task-agents.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import { applyUpdate } from '../lifecycle/task.lifecycle.js';
import { attemptsSpent, failure, newestMessage, senderGone } from '../run/task-run.js';
import { mailboxLeaseMs } from '../storage/execution-times.js';
import type { Claimed } from '../storage/task-lease.store.js';
import { TaskStore } from '../storage/task.store.js';
import type { StoredTask } from '../task.types.js';
import { MailboxHandOuts } from './mailbox-hand-outs.js';
import type { LeaseView } from './mailbox.service.js';
import { maxHistory, WorkOrders } from './work-orders.js';

/** A leased task that is working, and its caller with its current role and groups. */
export interface BegunTask {
  readonly task: StoredTask;
  readonly principal: Principal;
}

/** Begins the tasks of mailboxes, and shows them to their workers. */
@Injectable()
export class MailboxTasks {
  constructor(
    private readonly agents: TaskAgents,
    private readonly handOuts: MailboxHandOuts,
    private readonly changes: TaskChanges,
    private readonly store: TaskStore,
    private readonly orders: WorkOrders,
  ) {}

  /** Leases tasks until one can be worked on; undefined when there is none. */
  async beginNext(agent: PublishedAgent): Promise<BegunTask | undefined> {
    for (;;) {
      const claimed = await this.handOuts.leaseTask(agent.id);
      if (!claimed) return undefined;
      const begun = await this.handOuts.orRelease(claimed.task, this.beginTask(claimed, agent));
      if (begun) return begun;
    }
  }

  /** Sets a leased task to working; undefined when it has ended, or was changed meanwhile. */
  private async beginTask(claimed: Claimed, { org }: PublishedAgent): Promise<BegunTask | undefined> {
    const { task: from } = claimed;
    const principal = await this.agents.senderOf(from, org);
    const spent = attemptsSpent(claimed) ?? (principal ? undefined : senderGone());
    if (!spent && principal && from.state === 'TASK_STATE_WORKING') return { task: from, principal };
    const update = spent ? failure(spent) : ({ status: { state: 'TASK_STATE_WORKING' } } as const);
    const { task, event } = applyUpdate(from, update, this.changes.step());
    const hold = spent ? {} : this.handOuts.hold;
    if (!(await this.changes.commitAndNotify({ task, from, events: [event], hold }))) return undefined;
    return spent || !principal ? undefined : { task, principal };
  }

  /** The task with everything that its worker needs, and at most `historyLength` of its messages. */
  async showTask(agent: PublishedAgent, { task, principal }: BegunTask, historyLength?: number): Promise<LeaseView> {
    const earlier = await this.store.earlierMessages(task, maxHistory);
    const { epoch } = task;
    const message = newestMessage(task);
    const order = this.orders.orderFor({ agent, task, message, earlier, principal, epoch, historyLength });
    return {
      ...order,
      task: { ...order.task },
      message: { ...order.message },
      history: order.history.map((one) => ({ ...one })),
      caller: { ...order.caller, groups: [...order.caller.groups] },
      leaseEpoch: epoch,
      leaseMs: mailboxLeaseMs,
    };
  }
}
