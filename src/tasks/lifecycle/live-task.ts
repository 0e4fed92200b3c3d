import { RialtoError } from '../../kernel/errors.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import type { TaskUpdate } from '../executor.port.js';
import type { TaskChanges } from './task-changes.js';
import { applyUpdate, type Moved } from './task.lifecycle.js';
import type { Hold, IdempotencyKey } from '../storage/task-writer.js';
import { isEnded, type NumberedEvent, type StoredTask } from '../task.types.js';
import { interruptedStates } from '../../protocol/a2a/states.js';

type Changes = Pick<TaskChanges, 'commitAndNotify' | 'step' | 'runHold'>;

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
    private readonly changes: Changes,
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
  static fresh(changes: Changes, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(changes, { ...task, epoch: 1 }, undefined, [event], first);
  }

  /** A stored task that continues; `moved` is not committed yet, and its commit takes the lease. */
  static resumed(changes: Changes, stored: StoredTask, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(changes, { ...task, epoch: stored.epoch + 1 }, stored, [event], first);
  }

  /** A task that this process has claimed. */
  static claimed(changes: Changes, task: StoredTask): LiveTask {
    return new LiveTask(changes, task, task, []);
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
      const { task, event } = applyUpdate(this.current, update, this.changes.step());
      this.current = task;
      this.pending.push(event);
    }
    if ('rows' in update && update.rows) this.rows = [...this.rows, ...update.rows];
    this.dirty = true;
  }

  /** Resolves when all changes so far are committed, or the task is lost. Rejects when the database refuses. */
  save(): Promise<void> {
    // With nothing to save, `drain` would clear `saving` before it is set, and no later change would be saved.
    if (!this.saving && (!this.dirty || this.isLost)) return Promise.resolve();
    this.saving ??= this.drain();
    return this.saving;
  }

  private async drain(): Promise<void> {
    try {
      while (this.dirty && !this.isLost) await this.commitPending();
    } finally {
      this.saving = undefined; // synchronously after the last check of `dirty`
    }
  }

  private async commitPending(): Promise<void> {
    const { current: task, pending: events, stored: from, first } = this;
    const rows = [...(first?.rows ?? []), ...this.rows];
    const change = { task, events, from, hold: this.holdOf(task), ...first, rows };
    this.dirty = false;
    this.pending = [];
    this.rows = [];
    try {
      this.isLost = !(await this.changes.commitAndNotify(change));
    } catch (error) {
      this.revert(error);
      throw error;
    }
    if (this.isLost) return;
    this.stored = task;
    this.first = undefined;
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

  private holdOf(task: StoredTask): Hold {
    if (this.deferMs !== undefined) return { dueInMs: this.deferMs };
    if (isEnded(task) || interruptedStates.has(task.state)) return {};
    return this.changes.runHold;
  }
}
