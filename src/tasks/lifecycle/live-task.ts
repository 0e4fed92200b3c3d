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
  /** The number of this process. */
  readonly holder: number;
}

/** What else the first commit holds. */
export interface FirstCommit {
  readonly record?: readonly RowChange[];
  readonly rows?: readonly RowChange[];
  readonly key?: IdempotencyKey;
}

/**
 * A task while this process works on it: the present value, what of it is not committed yet, and one commit at a time.
 * Updates that come while a commit is under way go into the next one together.
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
    private now: StoredTask,
    stored: StoredTask | undefined,
    pending: NumberedEvent[],
    first?: FirstCommit,
  ) {
    this.stored = stored;
    this.pending = pending;
    this.dirty = pending.length > 0;
    this.first = first;
  }

  /** A task that is not stored yet; held by this process as soon as it is. */
  static fresh(deps: LiveTaskDeps, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(deps, { ...task, epoch: 1 }, undefined, [event], first);
  }

  /** A stored task that goes on; `moved` is not committed yet, and takes the lease with it. */
  static resumed(deps: LiveTaskDeps, stored: StoredTask, { task, event }: Moved, first: FirstCommit): LiveTask {
    return new LiveTask(deps, { ...task, epoch: stored.epoch + 1 }, stored, [event], first);
  }

  /** A task that this process has claimed. */
  static claimed(deps: LiveTaskDeps, task: StoredTask): LiveTask {
    return new LiveTask(deps, task, task, []);
  }

  /** As it is now, committed or not. */
  get task(): StoredTask {
    return this.now;
  }

  get isStored(): boolean {
    return this.stored !== undefined;
  }

  /** As it was last committed; before the first commit as it is. */
  get committed(): StoredTask {
    return this.stored ?? this.now;
  }

  /** True when somebody else has changed the row: canceled, taken over. Nothing more is written. */
  get lost(): boolean {
    return this.isLost;
  }

  /** Why what was done since the last commit can never be committed. It is forgotten, and the task is as it was then. */
  get refusal(): RialtoError | undefined {
    return this.refused;
  }

  /** Nothing further comes from this run: it ended, asks its caller, or goes on outside. */
  get atRest(): boolean {
    return this.deferMs !== undefined || isEnded(this.now) || interruptedStates.has(this.now.state);
  }

  apply(update: Exclude<TaskUpdate, { reply: unknown }>): void {
    if ('memo' in update) this.now = { ...this.now, memo: update.memo };
    if ('deferred' in update) this.deferMs = update.deferred.lookAgainMs;
    else if (!('memo' in update)) {
      const { task, event } = applyUpdate(this.now, update, this.deps.step());
      this.now = task;
      this.pending.push(event);
    }
    if ('rows' in update && update.rows) this.rows = [...this.rows, ...update.rows];
    this.dirty = true;
  }

  /** Resolves when everything so far is committed, or the task is lost. Rejects when the database refuses. */
  save(): Promise<void> {
    this.saving ??= this.drain();
    return this.saving;
  }

  private async drain(): Promise<void> {
    try {
      while (this.dirty && !this.isLost) await this.commitOnce();
    } finally {
      this.saving = undefined; // in the same breath as the last look at `dirty`
    }
  }

  private async commitOnce(): Promise<void> {
    this.dirty = false;
    const [task, events, before, rows] = [this.now, this.pending, this.stored, this.rows];
    this.pending = [];
    this.rows = [];
    try {
      this.isLost = !(await this.commit(task, events, before, rows));
    } catch (error) {
      this.goBack(error);
      throw error;
    }
    if (this.isLost) return;
    this.stored = task;
    this.first = undefined;
    if (events.length > 0) this.deps.feed.tell(task, events, before === undefined && isEnded(task));
  }

  /** Only from what this run did itself: what came with a request is its caller's to hear. */
  private goBack(error: unknown): void {
    if (!this.stored || this.first || !(error instanceof RialtoError) || error.code !== 'internal') return;
    this.refused = error;
    this.now = this.stored;
    this.pending = [];
    this.rows = [];
    this.deferMs = undefined;
    this.dirty = false;
  }

  private commit(
    task: StoredTask,
    events: NumberedEvent[],
    from: StoredTask | undefined,
    own: readonly RowChange[],
  ): Promise<boolean> {
    const rows = [...(this.first?.rows ?? []), ...own];
    return this.deps.commit({ task, events, from, hold: this.hold(task), ...this.first, rows });
  }

  private hold(task: StoredTask): Hold {
    if (this.deferMs !== undefined) return { dueInMs: this.deferMs };
    if (isEnded(task) || interruptedStates.has(task.state)) return {};
    return { leaseOwner: this.deps.holder, leaseMs, dueInMs: 0 };
  }
}
