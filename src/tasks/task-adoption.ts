import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { TaskId } from '../kernel/ids.js';
import type { Json } from '../kernel/json.js';
import type { RowChange } from '../platform/database/row-writer.js';
import type { Message } from '../protocol/a2a/model.js';
import type { PublishedAgent } from '../registry/published.types.js';
import type { TaskExecutor } from './executor.port.js';
import { LiveTask } from './lifecycle/live-task.js';
import { TaskChanges } from './lifecycle/task-changes.js';
import { openTask } from './lifecycle/task.lifecycle.js';
import { TaskQuota } from './run/task-quota.js';
import { TaskStarter } from './run/task-starter.js';
import { originOf } from './task-verbs.js';
import type { StoredTask } from './task.types.js';

/** Work that began outside of the gateway and becomes a task. */
export interface Adoptee {
  readonly id: TaskId;
  readonly contextId: string;
  /** The message that asked for the work. */
  readonly message: Message;
  /** State that a later run needs. */
  readonly memo: Json;
  /** Rows of the calling module that are committed together with the task, or not at all. */
  readonly rows: readonly RowChange[];
}

/** The first run of an adopted task. */
export interface Adopted {
  /** The current task, committed or not. */
  readonly task: StoredTask;
  /** Resolves when the run is over and committed, or when another process has taken over the task. */
  readonly ended: Promise<void>;
}

/** Creates tasks for work that is already in progress elsewhere. */
@Injectable()
export class TaskAdoption {
  constructor(
    private readonly changes: TaskChanges,
    private readonly starter: TaskStarter,
    private readonly quota: TaskQuota,
  ) {}

  /** Checks the quota before work that may be adopted begins. Throws `rate_limited`, `unavailable`. */
  requireRoom({ org }: CallContext): void {
    this.quota.requireRoom(org.id);
  }

  /**
   * Stores the task and starts its first run, `execute`. When it resolves, this process holds the lease. Throws
   * `rate_limited`, `unavailable`.
   */
  async adopt(
    ctx: CallContext,
    agent: PublishedAgent,
    { id, contextId, message, memo, rows }: Adoptee,
    execute: TaskExecutor['execute'],
  ): Promise<Adopted> {
    const { org, principal, depth } = ctx;
    const owner = { orgId: org.id, agentId: agent.id, agentName: agent.name, principal, depth };
    const seed = { id, contextId, ...owner, ...originOf(ctx) };
    const live = LiveTask.fresh(this.changes, openTask(seed, message, this.changes.step()), {});
    live.apply({ status: { state: 'TASK_STATE_WORKING' } });
    live.apply({ memo, rows });
    await this.quota.admitTask(ctx, () => live.save());
    if (live.lost) throw new RialtoError('unavailable', { message: 'the task could not be stored' });
    const run = this.starter.startRun(ctx, agent, live, true, { execute, leavesWork: () => true });
    return {
      get task() {
        return live.task;
      },
      ended: run.ended,
    };
  }
}
