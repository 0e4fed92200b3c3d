import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { TaskId } from '../../kernel/ids.js';
import { Semaphore } from '../../kernel/semaphore.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { LiveTask } from '../lifecycle/live-task.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import { TaskLeases, type Claimed, type DueTask } from '../storage/task-lease.store.js';
import { TaskAdmission } from './task-admission.js';
import { RunShares } from './run-shares.js';
import { failure, flawOf, type Begun } from './task-run.js';
import { TaskRunner } from './task.runner.js';

/** Most claims at the same time. */
const claimsAtOnce = 16;

/** Claims due tasks for this process and starts their runs. */
@Injectable()
export class TaskClaimer {
  private readonly claims = new Semaphore(claimsAtOnce);
  private readonly shares = new RunShares();

  constructor(
    private readonly runner: TaskRunner,
    private readonly changes: TaskChanges,
    private readonly leases: TaskLeases,
    private readonly admission: TaskAdmission,
    private readonly metrics: Metrics,
  ) {}

  /** Tasks that have been due for this many milliseconds, except those that this process would not claim now. */
  findDue(limit: number, forMs: number): Promise<DueTask[]> {
    return this.leases.findDue(limit, this.shares.saturated, forMs);
  }

  /** Claims a due task and starts its run; undefined when another process has it or there is nothing to do. */
  beginTask(id: TaskId, line = 0): Promise<Begun | undefined> {
    return this.claims.run(() => (this.runner.isDraining ? Promise.resolve(undefined) : this.claimTask(id)), line);
  }

  private async claimTask(id: TaskId): Promise<Begun | undefined> {
    const claimed = await this.leases.claim(id, this.shares.saturated, this.runner.isUnderWay(id));
    if (!claimed) return undefined;
    const { task, isTakenOver } = claimed;
    if (isTakenOver) this.metrics.takeovers.inc({ kind: 'tasks' });
    if (!this.shares.take(task)) {
      // more claims at once than free places; another process may have some
      await this.leases.release(task);
      return undefined;
    }
    let begun: Begun | undefined;
    try {
      begun = await this.beginClaimed(claimed);
      return begun;
    } finally {
      void (begun?.ended ?? Promise.resolve()).finally(() => this.shares.giveBack(task));
    }
  }

  private async beginClaimed(claimed: Claimed): Promise<Begun | undefined> {
    const live = LiveTask.claimed(this.changes, claimed.task);
    try {
      const { agent, ctx } = await this.admission.requireRunnable(claimed);
      if (!this.runner.isDraining) return this.runner.startRun(ctx, agent, live, true);
      // this process began to stop meanwhile; another one begins the task
      await this.leases.release(claimed.task);
      return undefined;
    } catch (error) {
      const known = RialtoError.from(error);
      const refusal = known.code === 'unavailable' ? 'dispatchFailed' : 'markedFailed';
      if (refusal === 'dispatchFailed') await this.leases.release(claimed.task);
      else {
        live.apply(failure(error));
        await live.save();
      }
      return { live, ended: Promise.resolve(), flaw: flawOf(known), refusal };
    }
  }
}
