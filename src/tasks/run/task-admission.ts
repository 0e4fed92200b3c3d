import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { VerbBus } from '../../kernel/verb-bus.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { TaskAgents } from '../../registry/task-agents.js';
import type { Claimed } from '../storage/task-lease.store.js';
import { messageSubmission } from '../task-verbs.js';
import type { StoredTask } from '../task.types.js';
import { attemptsSpent, newestMessage, senderGone } from './task-run.js';

/** Checks claimed tasks before their runs: rules may have changed since a task was accepted (abuse case 17). */
@Injectable()
export class TaskAdmission {
  constructor(
    private readonly agents: TaskAgents,
    private readonly verbs: VerbBus,
  ) {}

  /**
   * Returns the agent of a claimed task and the context of its run. Throws `poisoned` when no attempt is left,
   * `not_found` without an agent, and `denied`.
   */
  async requireRunnable(claimed: Claimed): Promise<{ agent: PublishedAgent; ctx: CallContext }> {
    const { task } = claimed;
    const spent = attemptsSpent(claimed);
    if (spent) throw spent;
    const found = await this.agents.agentOf(task);
    if (!found)
      throw new RialtoError('not_found', {
        message: 'the agent of this task is gone: its registration or publication was removed',
      });
    const { agent, isAdopted } = found;
    const principal = await this.agents.senderOf(task, agent.org);
    if (!principal) throw senderGone();
    const ctx = runContext({ ...task, principal }, agent);
    // For a call to a registered agent, its executor checks the permission before each poll.
    if (!isAdopted && !(await this.verbs.permits(messageSubmission(ctx, agent, newestMessage(task), {}))))
      throw new RialtoError('denied', { message: 'the sender of the task may no longer use this agent' });
    return { agent, ctx };
  }
}

/** The caller context for work after the request is over. */
function runContext({ id: requestId, principal, depth, lineage }: StoredTask, agent: PublishedAgent): CallContext {
  return {
    org: agent.org,
    principal,
    surface: 'system',
    requestId,
    depth,
    ...(lineage && { lineage, trace: lineage.trace }),
  };
}
