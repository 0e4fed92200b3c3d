import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { CallContext, OrgRef } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { VerbBus, type VerbCall } from '../kernel/verb-bus.js';
import { TaskAgents } from '../registry/task-agents.service.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { mailboxLeaseMs, mailboxWaitMs } from './execution-times.js';
import { ExecutionTokens } from './execution-tokens.service.js';
import { LiveTasks } from './live-tasks.js';
import { MailboxBell } from './mailbox-bell.js';
import type { Holder } from './mailbox.guard.js';
import { MailboxStore } from './mailbox.store.js';
import { attemptsSpent, failure, newestMessage, senderGone } from './task-run.js';
import { applyUpdate } from './task.lifecycle.js';
import type { Claimed } from './task-lease.store.js';
import { taskView, type StoredTask } from './task.types.js';

/** Earlier messages that a holder is told. */
const maxHistory = 50;

export const LeaseQuery = z.strictObject({ waitMs: z.coerce.number().int().min(0).max(60_000).default(0) });
export type LeaseQuery = z.output<typeof LeaseQuery>;

/** A task that was handed out: reports on it carry the epoch, and each keeps it for `leaseMs`. */
export const LeaseView = z.object({
  task: z.looseObject({ id: z.string() }),
  message: z.looseObject({ messageId: z.string() }),
  history: z.array(z.looseObject({ messageId: z.string() })),
  /** Whoever has it may report on this task, and nothing else. */
  token: z.string(),
  leaseEpoch: z.number().int(),
  leaseMs: z.number().int(),
});
export type LeaseView = z.output<typeof LeaseView>;

/** Hands tasks out to agents that nobody can call: they come and ask. */
@Injectable()
export class MailboxService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly agents: TaskAgents,
    private readonly store: MailboxStore,
    private readonly bell: MailboxBell,
    private readonly lives: LiveTasks,
    private readonly tokens: ExecutionTokens,
  ) {}

  /**
   * The oldest task that waits for an agent, at once or within `waitMs`; undefined when none came, or the caller has gone.
   * Throws `not_found`, `denied`, `unprocessable`.
   */
  async lease(holder: Holder, name: string, { waitMs }: LeaseQuery, gone: AbortSignal): Promise<LeaseView | undefined> {
    const wait = (agent: PublishedAgent) => this.bell.firstOf(agent.id, { waitMs, gone }, () => this.next(agent));
    if ('agent' in holder) {
      const { agent } = holder;
      if (name !== agent.name && name !== agent.id) throw noSuchAgent();
      const task = await wait(agent);
      return task && this.viewOf(task);
    }
    const agent = await this.agentOf(holder.ctx, name);
    const act = leaseAct(holder.ctx, agent);
    await this.requirePermission(act);
    if (agent.executor.kind !== 'mailbox')
      throw new RialtoError('unprocessable', { message: 'this agent has no mailbox' });
    const task = await wait(agent);
    return task && this.verbs.around({ ...act, sessionId: task.id }, () => this.viewOf(task));
  }

  /** Enabled or not: what was begun goes on. */
  private async agentOf({ org }: CallContext, name: string): Promise<PublishedAgent> {
    const { agents } = await this.agents.published.snapshot(org.id);
    const agent = agents.find((one) => one.name === name || one.id === name);
    if (!agent) throw noSuchAgent();
    return agent;
  }

  /** Asking costs no record, for it is done all day long; being refused does. */
  private async requirePermission(act: VerbCall): Promise<void> {
    if (!(await this.verbs.permits(act))) await this.verbs.around(act, () => Promise.resolve());
  }

  /** Leases until there is a task that can be worked on, or none at all. */
  private async next({ id, org }: PublishedAgent): Promise<StoredTask | undefined> {
    for (;;) {
      const claimed = await this.store.lease(id);
      if (!claimed) return undefined;
      const begun = await this.begin(claimed, org);
      if (begun) return begun;
    }
  }

  /** The task at work; undefined when it is over, or moved on meanwhile. */
  private async begin(claimed: Claimed, org: OrgRef): Promise<StoredTask | undefined> {
    const { task: from } = claimed;
    const spent = attemptsSpent(claimed) ?? ((await this.agents.senderOf(from, org)) ? undefined : senderGone());
    if (!spent && from.state === 'TASK_STATE_WORKING') return from;
    const update = spent ? failure(spent) : ({ status: { state: 'TASK_STATE_WORKING' } } as const);
    const { task, event } = applyUpdate(from, update, this.lives.step());
    const hold = spent ? {} : { leaseMs: mailboxLeaseMs, dueInMs: mailboxWaitMs };
    if (!(await this.lives.commit({ task, from, events: [event], hold }))) return undefined;
    this.lives.feed.tell(task, [event]);
    return spent ? undefined : task;
  }

  private async viewOf(task: StoredTask): Promise<LeaseView> {
    const { store } = this.lives;
    const history = await store.earlierMessages(task, maxHistory);
    const message = newestMessage(task);
    return {
      task: { ...taskView(task) },
      message: { ...message },
      history: history.map((one) => ({ ...one })),
      token: this.tokens.issue({ taskId: task.id, epoch: task.epoch }),
      leaseEpoch: task.epoch,
      leaseMs: mailboxLeaseMs,
    };
  }
}

function noSuchAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}

/** Working for an agent without its secret is an administrator's act. */
function leaseAct(ctx: CallContext, { name }: PublishedAgent): VerbCall {
  const resource = { type: 'Org', id: ctx.org.slug } as const;
  return { ctx, verb: 'mailbox.lease', action: 'admin_write', resource, args: { agent: name } };
}
