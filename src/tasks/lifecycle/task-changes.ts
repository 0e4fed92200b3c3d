import { Inject, Injectable } from '@nestjs/common';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { isDatabaseAway, isLineBroken } from '../../platform/database/outage.js';
import { isUniqueViolation, isUnstorable } from '../../platform/database/pg.js';
import { Presence } from '../../platform/database/presence.js';
import { leaseMs } from '../storage/task-lease.store.js';
import { TaskStore } from '../storage/task.store.js';
import { foldedSeqAfter, TaskWriter, type Hold, type TaskChange } from '../storage/task-writer.js';
import type { StoredTask } from '../task.types.js';
import { TaskFeed } from './task-feed.js';
import type { Step } from './task.lifecycle.js';

/** How many of the largest accepted messages the artifacts of a task may hold; its history may hold as much. */
const messagesPerTask = 8;

/** How often a commit is retried while its connections break one after another. */
const maxRepeats = 3;

/**
 * Most attempts against a task that changes at the same time; an attempt fails only when another change was committed.
 */
const maxAttempts = 20;

/** Commits the changes of tasks, and notifies the readers of each task. */
@Injectable()
export class TaskChanges {
  private readonly maxWeight: number;

  constructor(
    private readonly writer: TaskWriter,
    private readonly feed: TaskFeed,
    private readonly store: TaskStore,
    private readonly presence: Presence,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.maxWeight = messagesPerTask * settings.RIALTO_MAX_BODY_BYTES;
  }

  /** Inputs of the next change of any task. */
  step(): Step {
    return { now: systemClock.now(), newId, maxWeight: this.maxWeight };
  }

  /** The lease of a task that this process works on. */
  get runHold(): Hold {
    return { leaseOwner: this.presence.id, leaseMs, dueInMs: 0 };
  }

  /**
   * Commits a change with a certain result, and notifies the readers of its events. Returns false when the row had
   * changed or the key of a new task is in use. Throws `unavailable` when the result cannot be determined now, and
   * `internal` for a change that the database cannot hold: a repeat would fail again.
   */
  async commitAndNotify(change: TaskChange): Promise<boolean> {
    const isCommitted = await this.commitSurely(change);
    const { task, from, events } = change;
    if (isCommitted) this.store.keep({ ...task, foldedSeq: foldedSeqAfter(change) }, change);
    if (isCommitted && events.length > 0) this.feed.notifyReaders(task, events, from === undefined);
    return isCommitted;
  }

  /**
   * Makes attempts to change a task until one is committed. Throws `unavailable` when the task changes too often.
   * @param attempt changes the task as it was read last; returns undefined when the row had changed meanwhile.
   */
  async changeNewest(
    seen: StoredTask,
    attempt: (from: StoredTask) => Promise<StoredTask | undefined>,
  ): Promise<StoredTask> {
    let from = seen;
    for (let count = 0; count < maxAttempts; count++) {
      const changed = await attempt(from);
      if (changed) return changed;
      from = (await this.store.find(seen.id)) ?? from;
    }
    throw new RialtoError('unavailable', { message: 'the task changes too fast; try again' });
  }

  /**
   * Commits a change. When the result was lost with its connection, the rows show whether it happened; if not, the
   * change is repeated as a whole. Its id, its key and the number of its event make the repeat harmless, however late
   * the first one arrives.
   */
  private async commitSurely(change: TaskChange): Promise<boolean> {
    try {
      return await this.writer.commitInBatch(change);
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
      return (await this.writer.commitInBatch(change)) || (await this.happened(change));
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
}
