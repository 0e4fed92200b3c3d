import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import type { TaskExecutor } from '../executor.port.js';
import { LiveTask, type FirstCommit } from '../lifecycle/live-task.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import type { Moved } from '../lifecycle/task.lifecycle.js';
import type { StoredTask } from '../task.types.js';
import { TaskJobs } from './task-jobs.js';
import { TaskQuota } from './task-quota.js';
import type { ActiveRun } from './task-run.js';
import { TaskRunner } from './task.runner.js';

/** Milliseconds that a pure executor may take before its task is stored as working (decisions: fast path). */
const graceMs = 5;

/** A change that makes a task ready for its next run, not committed yet. */
export interface ReadyTask {
  readonly moved: Moved;
  readonly first: FirstCommit;
  /** The stored task that continues; absent for a new one. */
  readonly from?: StoredTask;
  /** True when the caller waits for the result; otherwise a worker runs the task. */
  readonly waits: boolean;
}

/** A stored task, and its run when it is in this process. A run that has a `reply` stored no task. */
export interface Started {
  readonly task: StoredTask;
  readonly run?: ActiveRun;
}

/** Stores tasks and starts their runs in this process, or leaves the runs to workers. */
@Injectable()
export class TaskStarter {
  constructor(
    private readonly changes: TaskChanges,
    private readonly runner: TaskRunner,
    private readonly quota: TaskQuota,
    private readonly jobs: TaskJobs,
  ) {}

  /**
   * Stores a task, and starts its run when the caller waits for it. Returns undefined when a concurrent request took
   * the key first, or the task changed meanwhile.
   */
  async storeAndStart(ctx: CallContext, agent: PublishedAgent, ready: ReadyTask): Promise<Started | undefined> {
    const { moved, first, from, waits } = ready;
    const { pure, parkedMs } = this.runner.executorOf(agent);
    if (!waits || parkedMs !== undefined) return this.storeForWorker(agent, ready);
    if (pure && !from && !first.rows?.length)
      return this.startAndStore(ctx, agent, LiveTask.fresh(this.changes, moved, first));
    const live = from ? LiveTask.resumed(this.changes, from, moved, first) : LiveTask.fresh(this.changes, moved, first);
    await live.save();
    const task = live.committed;
    return live.lost ? undefined : { task, run: this.startRun(ctx, agent, live, true) };
  }

  /** Starts the run of a live task, and frees its place in the quota at the end. @param saves as in ActiveRun. */
  startRun(
    ctx: CallContext,
    agent: PublishedAgent,
    live: LiveTask,
    saves: boolean,
    executor?: Pick<TaskExecutor, 'execute' | 'leavesWork'>,
  ): ActiveRun {
    const run = this.runner.startRun(ctx, agent, live, saves, executor);
    this.quota.freeAfter(run);
    return run;
  }

  /** Starts a run without effects outside of the gateway before its first commit: often one commit is enough. */
  private async startAndStore(ctx: CallContext, agent: PublishedAgent, live: LiveTask): Promise<Started | undefined> {
    const run = this.startRun(ctx, agent, live, false);
    if (!live.atRest && !run.reply) await settledOrGrace(run);
    if (run.reply) return { task: live.task, run };
    try {
      await run.saveFromNow();
      return live.lost ? undefined : { task: live.committed, run };
    } finally {
      if (!live.isStored) run.stop('lost');
    }
  }

  /** Stores a task without starting it: a worker gets it from the queue, or an external worker fetches it. */
  private async storeForWorker(
    agent: PublishedAgent,
    { moved: { task, event }, first, from }: ReadyTask,
  ): Promise<Started | undefined> {
    const executor = this.runner.executorOf(agent);
    const change = { task, from, events: [event], hold: { dueInMs: executor.parkedMs ?? 0 }, ...first };
    if (!(await this.changes.commitAndNotify(change))) return undefined;
    if (executor.parkedMs === undefined) this.jobs.enqueueNew(task.id, this.quota.lineOf(task));
    else executor.rested?.({ agent });
    return { task };
  }
}

function settledOrGrace(run: ActiveRun): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    void run.ended.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
