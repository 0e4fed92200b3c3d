import { Inject, Injectable } from '@nestjs/common';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type TaskId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { isDatabaseAway, isLineBroken } from '../../platform/database/outage.js';
import { isUniqueViolation, isUnstorable } from '../../platform/database/pg.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { LiveTask, type FirstCommit, type LiveTaskDeps } from './live-task.js';
import { TaskFeed } from './task-feed.js';
import { TaskLeases } from '../storage/task-lease.store.js';
import type { Moved, Step } from './task.lifecycle.js';
import { TaskStore } from '../storage/task.store.js';
import { TaskWriter, type TaskChange } from '../storage/task-writer.js';
import type { StoredTask } from '../task.types.js';

/** How many of the largest accepted messages the artifacts of a task may hold; its history may hold as much. */
const messagesPerTask = 8;

/** How often a commit is retried while its connections break one after another. */
const maxRepeats = 3;

/** Creates live tasks with the services that they use to write, notify and read. */
@Injectable()
export class LiveTasks {
  private readonly deps: LiveTaskDeps;
  private readonly maxWeight: number;

  constructor(
    private readonly writer: TaskWriter,
    readonly feed: TaskFeed,
    readonly store: TaskStore,
    readonly leases: TaskLeases,
    private readonly producer: JobProducer,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.maxWeight = messagesPerTask * settings.RIALTO_MAX_BODY_BYTES;
    this.deps = {
      commit: (change) => this.commit(change),
      feed,
      holder: leases.holder,
      step: () => this.step(),
    };
  }

  step(): Step {
    return { now: systemClock.now(), newId, maxWeight: this.maxWeight };
  }

  /**
   * Returns true when a change is committed, false when its row had changed or the key of a new task is in use. When
   * the result of a commit was lost with its connection, the rows show whether it happened; if not, it is repeated as a
   * whole. Its id, its key and the number of its event make the repeat harmless, however late the first one arrives
   * (F22). Throws `unavailable` when the result cannot be determined now, and `internal` for a change that the database
   * cannot hold: a repeat would fail again.
   */
  async commit(change: TaskChange): Promise<boolean> {
    try {
      return await this.writer.commit(change);
    } catch (cause) {
      if (isUnstorable(cause))
        throw new RialtoError('internal', { message: 'the task has content that the database cannot store', cause });
      // The first failure is the one to report.
      const outcome = await this.outcomeOf(change, cause).catch(() => undefined);
      if (outcome === undefined)
        throw isDatabaseAway(cause)
          ? cause
          : new RialtoError('unavailable', { message: 'the task could not be stored', cause });
      return outcome;
    }
  }

  /** The result of a change after its commit failed; undefined when it was not made although the connection works. */
  private async outcomeOf(change: TaskChange, failure: unknown, triesLeft = maxRepeats): Promise<boolean | undefined> {
    if (await this.happened(change)) return true;
    if (!isLineBroken(failure) || triesLeft === 0) return undefined;
    try {
      return (await this.writer.commit(change)) || (await this.happened(change));
    } catch (error) {
      // The earlier attempt did write the other rows of the change, but not the change itself: it lost.
      if (isUniqueViolation(error)) return this.happened(change);
      return this.outcomeOf(change, error, triesLeft - 1);
    }
  }

  /**
   * True when the rows show the change. The holder of the task may have continued since, so the stored event is
   * compared when there is one.
   */
  private async happened({ task, from, events }: TaskChange): Promise<boolean> {
    const last = events.at(-1);
    if (from && last) {
      const [stored] = await this.store.eventsBetween(task.id, last.seq - 1, last.seq);
      return stored !== undefined && canonicalJson(stored) === canonicalJson(last.body);
    }
    const row = await this.store.find(task.id);
    return row !== undefined && (!from || (row.seq === task.seq && row.epoch === task.epoch));
  }

  fresh(moved: Moved, first: FirstCommit): LiveTask {
    return LiveTask.fresh(this.deps, moved, first);
  }

  resumed(stored: StoredTask, moved: Moved, first: FirstCommit): LiveTask {
    return LiveTask.resumed(this.deps, stored, moved, first);
  }

  /** Enqueues a task that is due and has no holder. Returns true when it was. */
  async wake(id: TaskId): Promise<boolean> {
    const isWaiting = await this.leases.isWaiting(id);
    if (isWaiting) void this.enqueue(id);
    return isWaiting;
  }

  /** Returns true when the queue accepted the job; otherwise the sweeper finds the task. */
  enqueue(id: TaskId, line = 0): Promise<boolean> {
    return this.producer.tryEnqueue('task.execute', { taskId: id }, id, line);
  }

  claimed(task: StoredTask): LiveTask {
    return LiveTask.claimed(this.deps, task);
  }
}
