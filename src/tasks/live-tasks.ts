import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { newId, type TaskId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { JobBell } from '../platform/jobs/job-bell.js';
import { LiveTask, type FirstCommit, type LiveTaskDeps } from './live-task.js';
import { TaskFeed } from './task-feed.js';
import { TaskLeases } from './task-lease.store.js';
import type { Moved, Step } from './task.lifecycle.js';
import { TaskStore } from './task.store.js';
import { TaskWriter } from './task-writer.js';
import type { StoredTask } from './task.types.js';

/** How many of the largest messages the artifacts of a task may hold, and its history as well. */
const messagesPerTask = 8;

/** Makes live tasks: what they need to write, tell and read, in one hand. */
@Injectable()
export class LiveTasks {
  private readonly deps: LiveTaskDeps;
  private readonly maxWeight: number;

  constructor(
    readonly writer: TaskWriter,
    readonly feed: TaskFeed,
    readonly store: TaskStore,
    readonly leases: TaskLeases,
    private readonly bell: JobBell,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.maxWeight = messagesPerTask * settings.RIALTO_MAX_BODY_BYTES;
    this.deps = { writer, feed, store, holder: leases.holder, step: () => this.step() };
  }

  step(): Step {
    return { now: systemClock.now(), newId, maxWeight: this.maxWeight };
  }

  fresh(moved: Moved, first: FirstCommit): LiveTask {
    return LiveTask.fresh(this.deps, moved, first);
  }

  resumed(stored: StoredTask, moved: Moved, first: FirstCommit): LiveTask {
    return LiveTask.resumed(this.deps, stored, moved, first);
  }

  /** Rings for a task that is due and that nobody works on. */
  async wake(id: TaskId): Promise<boolean> {
    const isWaiting = await this.leases.isWaiting(id);
    if (isWaiting) this.ring(id);
    return isWaiting;
  }

  ring(id: TaskId): void {
    this.bell.ring(undefined, 'task.execute', { taskId: id }, id);
  }

  claimed(task: StoredTask): LiveTask {
    return LiveTask.claimed(this.deps, task);
  }
}
