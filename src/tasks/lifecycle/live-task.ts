import { RialtoError } from '../../kernel/errors.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import type { TaskUpdate } from '../executor.port.js';
import type { TaskFeed } from './task-feed.js';
import { leaseMs } from '../storage/task-lease.store.js';
import { applyUpdate, type Moved, type Step } from './task.lifecycle.js';
import type { Hold, IdempotencyKey, TaskChange } from '../storage/task-writer.js';
import { isEnded, type NumberedEvent, type StoredTask } from '../task.types.js';
import { interruptedStates } from '../../protocol/a2a/states.js';

export interface LiveTaskDeps {
  /** @see LiveTasks.commit */
  readonly commit: (change: TaskChange) => Promise<boolean>;
  readonly feed: TaskFeed;
  readonly step: () => Step;
  /** The presence id of this process. */
  readonly holder: number;
}

/** Rows and key that only the first commit has. */
export interface FirstCommit {
  readonly record?: readonly RowChange[];
  readonly rows?: readonly RowChange[];
  readonly key?: IdempotencyKey;
}

/**
 * A task while this process works on it: its current value, the changes that are not committed yet, and at most one
 * commit at a time. Updates that arrive during a commit go into the next one together.
 */
export class LiveTask {
  private stored?: StoredTask;
  private pending: NumberedEvent[];
  private rows: readonly RowChange[] = [];
  private deferMs?: number;
  private dirty: boolean;
  private saving?: Promise<void>;
  private first?: FirstCommit;
  private isLost = false;
  private refused?: RialtoError;

  private constructor(
    private readonly deps: LiveTaskDeps,
    private current: StoredTask,
    stored: StoredTask | undefined,
    pending: NumberedEvent[],
    first?: FirstCommit,
  ) {
    this.stored = stored;
    this.pending = pending;
    this.dirty = pending.length > 0;
    this.first = first;
  }

  /** A task that is not stored yet; its first commit stores it with a lease of this process. */
  static fresh(deps: LiveTaskDeps, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(deps, { ...task, epoch: 1 }, undefined, [event], first);
  }

  /** A stored task that continues; `moved` is not committed yet, and its commit takes the lease. */
  static resumed(deps: LiveTaskDeps, stored: StoredTask, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(deps, { ...task, epoch: stored.epoch + 1 }, stored, [event], first);
  }

  /** A task that this process has claimed. */
  static claimed(deps: LiveTaskDeps, task: StoredTask): LiveTask {
    return new LiveTask(deps, task, task, []);
  }

  /** The current task, committed or not. */
  get task(): StoredTask {
    return this.current;
  }

  get isStored(): boolean {
    return this.stored !== undefined;
  }

  /** The task as last committed; before the first commit, the current task. */
  get committed(): StoredTask {
    return this.stored ?? this.current;
  }

  /**
   * True when another process has changed the row, e.g. canceled the task or taken it over. No further change is
   * written.
   */
  get lost(): boolean {
    return this.isLost;
  }

  /** The error of changes that can never be committed. They were discarded, and the task is as last committed. */
  get refusal(): RialtoError | undefined {
    return this.refused;
  }

  /** True when this run makes no further changes: the task ended, asks its caller, or was deferred. */
  get atRest(): boolean {
    return this.deferMs !== undefined || isEnded(this.current) || interruptedStates.has(this.current.state);
  }

  apply(update: Exclude<TaskUpdate, { reply: unknown }>): void {
    if ('memo' in update) this.current = { ...this.current, memo: update.memo };
    if ('deferred' in update) this.deferMs = update.deferred.lookAgainMs;
    else if (!('memo' in update)) {
      const { task, event } = applyUpdate(this.current, update, this.deps.step());
      this.current = task;
      this.pending.push(event);
    }
    if ('rows' in update && update.rows) this.rows = [...this.rows, ...update.rows];
    this.dirty = true;
  }

  /** Resolves when all changes so far are committed, or the task is lost. Rejects when the database refuses. */
  save(): Promise<void> {
    this.saving ??= this.drain();
    return this.saving;
  }

  private async drain(): Promise<void> {
    try {
      while (this.dirty && !this.isLost) await this.commitOnce();
    } finally {
      this.saving = undefined; // synchronously after the last check of `dirty`
    }
  }

  private async commitOnce(): Promise<void> {
    this.dirty = false;
    const [task, events, before, rows] = [this.current, this.pending, this.stored, this.rows];
    this.pending = [];
    this.rows = [];
    try {
      this.isLost = !(await this.commit(task, events, before, rows));
    } catch (error) {
      this.revert(error);
      throw error;
    }
    if (this.isLost) return;
    this.stored = task;
    this.first = undefined;
    if (events.length > 0) this.deps.feed.tell(task, events, before === undefined && isEnded(task));
  }

  /**
   * Discards changes that can never be stored. Only for changes of this run: the caller of a request gets the error of
   * its own change.
   */
  private revert(error: unknown): void {
    if (!this.stored || this.first || !(error instanceof RialtoError) || error.code !== 'internal') return;
    this.refused = error;
    this.current = this.stored;
    this.pending = [];
    this.rows = [];
    this.deferMs = undefined;
    this.dirty = false;
  }

  private commit(
    task: StoredTask,
    events: NumberedEvent[],
    from: StoredTask | undefined,
    newRows: readonly RowChange[],
  ): Promise<boolean> {
    const rows = [...(this.first?.rows ?? []), ...newRows];
    return this.deps.commit({ task, events, from, hold: this.hold(task), ...this.first, rows });
  }

  private hold(task: StoredTask): Hold {
    if (this.deferMs !== undefined) return { dueInMs: this.deferMs };
    if (isEnded(task) || interruptedStates.has(task.state)) return {};
    return { leaseOwner: this.deps.holder, leaseMs, dueInMs: 0 };
  }
}
