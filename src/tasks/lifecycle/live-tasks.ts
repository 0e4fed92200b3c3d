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

/** How many of the largest messages the artifacts of a task may hold, and its history as well. */
const messagesPerTask = 8;

/** How often a change is made again while one line after the other breaks under it. */
const maxRepeats = 3;

/** Makes live tasks: what they need to write, tell and read, in one hand. */
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
   * True when a change is committed, false when its row had moved on or the key of a new task is in use. A commit whose outcome
   * nobody heard is looked up, for the rows say whether it happened; one that did not is made again as a whole, which its id,
   * its key and the number of its event make harmless however late the first one arrives (F22). Throws `unavailable` when
   * the truth cannot be learned now, `internal` for what the database cannot hold: made again it would fail again.
   */
  async commit(change: TaskChange): Promise<boolean> {
    try {
      return await this.writer.commit(change);
    } catch (cause) {
      if (isUnstorable(cause)) throw new RialtoError('internal', { message: 'the task cannot be stored so', cause });
      // Of many failures the first one tells why.
      const outcome = await this.outcomeOf(change, cause).catch(() => undefined);
      if (outcome === undefined)
        throw isDatabaseAway(cause)
          ? cause
          : new RialtoError('unavailable', { message: 'the task could not be stored', cause });
      return outcome;
    }
  }

  /** What became of a change whose commit failed; undefined when it was not made, and its line works. */
  private async outcomeOf(change: TaskChange, failure: unknown, triesLeft = maxRepeats): Promise<boolean | undefined> {
    if (await this.happened(change)) return true;
    if (!isLineBroken(failure) || triesLeft === 0) return undefined;
    try {
      return (await this.writer.commit(change)) || (await this.happened(change));
    } catch (error) {
      // What goes with the change was written by the time before, and the change was not: it lost.
      if (isUniqueViolation(error)) return this.happened(change);
      return this.outcomeOf(change, error, triesLeft - 1);
    }
  }

  /** Whether the rows show a change. Whoever works on a task may have gone on since, so its last event tells, not the row alone. */
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

  /** Rings for a task that is due and that nobody works on. */
  async wake(id: TaskId): Promise<boolean> {
    const isWaiting = await this.leases.isWaiting(id);
    if (isWaiting) void this.enqueue(id);
    return isWaiting;
  }

  /** True when the queue took it; otherwise the sweep finds the task. */
  enqueue(id: TaskId, line = 0): Promise<boolean> {
    return this.producer.tryEnqueue('task.execute', { taskId: id }, id, line);
  }

  claimed(task: StoredTask): LiveTask {
    return LiveTask.claimed(this.deps, task);
  }
}
