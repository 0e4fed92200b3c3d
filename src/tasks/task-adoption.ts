import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { TaskId } from '../kernel/ids.js';
import type { Json } from '../kernel/json.js';
import type { RowChange } from '../platform/database/row-writer.js';
import type { Message } from '../protocol/a2a/model.js';
import type { PublishedAgent } from '../registry/published.types.js';
import type { TaskExecutor } from './executor.port.js';
import { LiveTasks } from './lifecycle/live-tasks.js';
import { openTask } from './lifecycle/task.lifecycle.js';
import { TaskQuota } from './run/task-quota.js';
import { TaskRunner } from './run/task.runner.js';
import { originOf } from './task-verbs.js';
import type { StoredTask } from './task.types.js';

/** Work that was begun outside before it was a task here. */
export interface Adoptee {
  readonly id: TaskId;
  readonly contextId: string;
  /** What was asked. */
  readonly message: Message;
  /** What a later run has to know. */
  readonly memo: Json;
  /** Rows of the adopter's room that stand or fall with the task. */
  readonly rows: readonly RowChange[];
}

/** The first run of an adopted task, while it lasts. */
export interface Adopted {
  /** As it is now, committed or not. */
  readonly task: StoredTask;
  /** Resolves when the run is over and committed, or lost to somebody else. */
  readonly ended: Promise<void>;
}

/** Makes tasks of work that is under way elsewhere. */
@Injectable()
export class TaskAdoption {
  constructor(
    private readonly lives: LiveTasks,
    private readonly runner: TaskRunner,
    private readonly quota: TaskQuota,
  ) {}

  /** Before work that may be adopted is begun. Throws `rate_limited`, `unavailable`. */
  requireRoom({ org }: CallContext): void {
    this.quota.requireRoom(org.id);
  }

  /** Stored and held by this process when it resolves; `execute` is its first run. Throws `rate_limited`, `unavailable`. */
  async adopt(
    ctx: CallContext,
    agent: PublishedAgent,
    { id, contextId, message, memo, rows }: Adoptee,
    execute: TaskExecutor['execute'],
  ): Promise<Adopted> {
    const { org, principal, depth } = ctx;
    const whose = { orgId: org.id, agentId: agent.id, agentName: agent.name, principal, depth };
    const seed = { id, contextId, ...whose, ...originOf(ctx) };
    const live = this.lives.fresh(openTask(seed, message, this.lives.step()), {});
    live.apply({ status: { state: 'TASK_STATE_WORKING' } });
    live.apply({ memo, rows });
    await this.quota.admit(ctx, () => live.save());
    if (live.lost) throw new RialtoError('unavailable', { message: 'the task could not be stored' });
    const run = this.runner.start(live, agent, ctx, true, { execute, leavesWork: () => true });
    this.quota.freeAfter(run);
    return {
      get task() {
        return live.task;
      },
      ended: run.ended,
    };
  }
}
