import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { PublishedService } from '../../registry/published.service.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { MailboxWaiters } from './mailbox-waiters.js';
import type { LeaseCaller } from './mailbox-caller.decorator.js';
import type { Holder } from './mailbox.guard.js';
import { MailboxHandOuts } from './mailbox-hand-outs.js';
import { MailboxTasks } from './mailbox-tasks.js';

export const LeaseQuery = z.strictObject({
  waitMs: z.coerce.number().int().min(0).max(60_000).default(0),
  /** Most messages in `task.history`, the newest ones; all when absent. */
  historyLength: z.coerce.number().int().min(0).optional(),
});
export type LeaseQuery = z.output<typeof LeaseQuery>;

/** A leased task. Reports on it carry the epoch, and each report extends the lease to `leaseMs`. */
export const LeaseView = z.object({
  task: z.looseObject({ id: z.string() }),
  message: z.looseObject({ messageId: z.string() }),
  history: z.array(z.looseObject({ messageId: z.string() })),
  /** The sender of the task: its kind and subject, with its current role and groups. */
  caller: z.object({
    kind: z.string(),
    subject: z.string(),
    org: z.string(),
    role: z.string(),
    groups: z.array(z.string()),
  }),
  /** Time after which the result is no longer wanted, ISO 8601. */
  deadline: z.string(),
  /** Headers for each call that is made for this task: `traceparent`, `x-rialto-depth` and `x-rialto-lineage`. */
  headers: z.record(z.string(), z.string()),
  /** Lets its bearer report on this task, and nothing else. */
  token: z.string(),
  leaseEpoch: z.number().int(),
  leaseMs: z.number().int(),
});
export type LeaseView = z.output<typeof LeaseView>;

/** Leases tasks to workers that fetch them, for agents that the gateway cannot call. */
@Injectable()
export class MailboxService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly published: PublishedService,
    private readonly waiters: MailboxWaiters,
    private readonly tasks: MailboxTasks,
    private readonly handOuts: MailboxHandOuts,
  ) {}

  /**
   * Leases the oldest waiting task of an agent, at once or within `waitMs`; undefined when none arrived, or the client
   * has disconnected. When its answer does not arrive, the task goes to the next request. Throws `not_found`, `denied`,
   * `unprocessable`.
   */
  async lease(
    holder: Holder,
    name: string,
    { waitMs, historyLength }: LeaseQuery,
    caller: LeaseCaller,
  ): Promise<LeaseView | undefined> {
    const { gone } = caller;
    const wait = (agent: PublishedAgent) =>
      this.waiters.firstOf(agent.id, { waitMs, gone }, () => this.tasks.beginNext(agent));
    if ('agent' in holder) {
      const { agent } = holder;
      if (name !== agent.name && name !== agent.id) throw noSuchAgent();
      const begun = await wait(agent);
      return begun && this.handOuts.handOut(begun.task, caller, () => this.tasks.showTask(agent, begun, historyLength));
    }
    const agent = await this.requireAgent(holder.ctx, name);
    const act = leaseAct(holder.ctx, agent);
    await this.requirePermission(act);
    if (agent.executor.kind !== 'mailbox')
      throw new RialtoError('unprocessable', { message: 'this agent has no mailbox' });
    const begun = await wait(agent);
    if (!begun) return undefined;
    const recorded = { ...act, sessionId: begun.task.id };
    return this.handOuts.handOut(begun.task, caller, () =>
      this.verbs.around(recorded, () => this.tasks.showTask(agent, begun, historyLength)),
    );
  }

  /** Also finds a disabled agent: tasks that were accepted before continue. */
  private async requireAgent({ org }: CallContext, name: string): Promise<PublishedAgent> {
    const { agents } = await this.published.snapshot(org.id);
    const agent = agents.find((one) => one.name === name || one.id === name);
    if (!agent) throw noSuchAgent();
    return agent;
  }

  /** Records only a refusal. A permitted poll is not recorded, because workers poll all the time. */
  private async requirePermission(act: VerbCall): Promise<void> {
    if (!(await this.verbs.permits(act))) await this.verbs.around(act, () => Promise.resolve());
  }
}

function noSuchAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}

/** The act of leasing with a credential of the org instead of the agent's secret: only an administrator may do it. */
function leaseAct(ctx: CallContext, { name }: PublishedAgent): VerbCall {
  const resource = { type: 'Org', id: ctx.org.slug } as const;
  return { ctx, verb: 'mailbox.lease', action: 'admin_write', resource, args: { agent: name } };
}
