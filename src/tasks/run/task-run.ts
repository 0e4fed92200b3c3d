import { errorCodes, RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import type { Message } from '../../protocol/a2a/model.js';
import { wordOf, type TaskState } from '../../protocol/a2a/states.js';
import type { Said, TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import type { Claimed } from '../storage/task-lease.store.js';

/** Why a run stops before its work is done. */
export type StopReason = 'canceled' | 'lost' | 'stopping';

/**
 * How often a task is begun after its process was lost: a task that was lost with three processes would be lost with a
 * fourth (AN-78).
 */
const maxAttempts = 3;

/** The error for a claimed task without attempts left; undefined while it may be begun again. */
export function attemptsSpent({ crashes }: Pick<Claimed, 'crashes'>): RialtoError | undefined {
  if (crashes < maxAttempts) return undefined;
  return new RialtoError('poisoned', {
    message: `exceeded ${maxAttempts} attempts: its worker was lost each time`,
  });
}

/** The error for a task when its sender has lost access (abuse case 17). */
export function senderGone(): RialtoError {
  return new RialtoError('denied', { message: 'the sender of the task has no access any more' });
}

/** A claimed task that this process has begun. */
export interface Begun {
  readonly live: LiveTask;
  /** Resolves when the run is over and everything is committed. Never rejects. */
  readonly ended: Promise<void>;
  /** The failure, set after the end: an error code and its title, never a text of an agent. */
  readonly flaw?: string;
  /** Set when the claimed task was not run: it was failed, or released because of an error of the gateway. */
  readonly refusal?: 'markedFailed' | 'dispatchFailed';
}

/** One run of an executor over a live task, in this process. */
export class ActiveRun implements Begun {
  /** The whole answer, when the agent answered without a task. */
  reply?: Said;
  /** Resolves when the run is over and all its changes are committed. Never rejects. */
  readonly ended: Promise<void>;
  isOver = false;
  private error?: RialtoError;
  private reason?: StopReason;
  /** Created when the signal is first read; most runs that end at once never need it. */
  private abortController?: AbortController;
  private saves: boolean;
  private readonly about: Pick<TaskRun, 'agent' | 'message'>;

  /** @param saves commit each update; otherwise from `saveFromNow` on (decisions: fast path). */
  constructor(
    readonly live: LiveTask,
    private readonly executor: Pick<TaskExecutor, 'execute' | 'leavesWork'>,
    run: Omit<TaskRun, 'signal' | 'stored'>,
    { saves, onTrouble }: { saves: boolean; onTrouble: (error: unknown) => void },
  ) {
    this.saves = saves;
    this.about = { agent: run.agent, message: run.message };
    const signal = (): AbortSignal => this.signal;
    const runWithSignal = {
      get signal() {
        return signal();
      },
      ...run,
      stored: () => live.save(),
    };
    this.ended = this.work(runWithSignal)
      .catch((error: unknown) => {
        this.error = new RialtoError('unavailable');
        onTrouble(error);
      })
      .finally(() => (this.isOver = true));
  }

  stop(reason: StopReason): void {
    this.reason ??= reason;
    this.abortController?.abort(this.reason);
  }

  /** True when another process can continue the work from the stored task. */
  get mayLeave(): boolean {
    return this.executor.leavesWork?.({ ...this.about, task: this.live.committed }) ?? false;
  }

  get stopped(): boolean {
    return this.reason !== undefined;
  }

  /** True when the run was stopped by a cancel; the cancel has committed the end of the task. */
  get canceled(): boolean {
    return this.reason === 'canceled';
  }

  get flaw(): string | undefined {
    if (this.error) return flawOf(this.error);
    const { state } = this.live.committed;
    return failedStates.has(state) ? `${wordOf(state)}: reported by the agent` : undefined;
  }

  /** True when the run is working: it is neither at rest nor stopped. */
  get isUnderWay(): boolean {
    return !this.isOver && !this.stopped && !this.live.atRest;
  }

  private get signal(): AbortSignal {
    if (!this.abortController) {
      this.abortController = new AbortController();
      if (this.reason) this.abortController.abort(this.reason);
    }
    return this.abortController.signal;
  }

  /** Commits all changes so far, and from now on each update. */
  saveFromNow(): Promise<void> {
    this.saves = true;
    return this.live.save();
  }

  private async work(run: TaskRun): Promise<void> {
    await this.runExecutor(run).catch((error: unknown) => {
      if (!this.live.refusal) throw error;
    });
    if (!this.live.refusal) return;
    // A new run would fail in the same way. The task fails instead, so that its outside work is not begun twice.
    this.error = this.live.refusal;
    this.live.apply(failure(this.error));
    await this.live.save();
  }

  private async runExecutor(run: TaskRun): Promise<void> {
    try {
      await this.consume(this.executor.execute(run));
      if (!this.live.atRest && !this.stopped && !this.reply)
        throw new RialtoError('internal', { message: 'the agent stopped without an answer' });
    } catch (error) {
      if (this.stopped || this.live.atRest || this.live.lost || this.live.refusal) return;
      // An error of the gateway itself says nothing about the work: the task stays open, and the next run continues it.
      const known = RialtoError.from(error);
      if (this.live.isStored && known.code === 'unavailable') throw error;
      this.error = known;
      this.live.apply(failure(error));
    }
    if (this.saves && !this.stopped) await this.live.save();
  }

  private async consume(updates: AsyncIterable<TaskUpdate> | Iterable<TaskUpdate>): Promise<void> {
    if (Symbol.iterator in updates) {
      // A synchronous run: all its updates are committed together.
      for (const update of updates) if (!this.accept(update)) return;
      return;
    }
    const iterator = updates[Symbol.asyncIterator]();
    const { signal } = this;
    const aborted = new Promise<'aborted'>((resolve) => {
      if (signal.aborted) resolve('aborted');
      else signal.addEventListener('abort', () => resolve('aborted'), { once: true });
    });
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted]);
      if (next === 'aborted' || next.done) return;
      const continues = this.accept(next.value);
      if (this.saves) this.saveSoon();
      // A memo is stored before the executor acts on it: when this process dies, the next run has it (I5).
      if (continues && 'memo' in next.value && this.saves) await this.live.save();
      if (!continues) return void Promise.resolve(iterator.return?.()).catch(() => undefined);
    }
  }

  /** Applies an update. Returns false when no later update counts. */
  private accept(update: TaskUpdate): boolean {
    if (this.stopped || this.live.lost || this.live.refusal) return false;
    if ('reply' in update) {
      if (!this.live.isStored && !this.saves) this.reply = update.reply;
      else this.live.apply({ status: { state: 'TASK_STATE_COMPLETED', message: update.reply } });
      return false;
    }
    this.live.apply(update);
    return !this.live.atRest;
  }

  private saveSoon(): void {
    void this.live.save().then(
      () => this.live.lost && this.stop('lost'),
      () => this.stop('lost'),
    );
  }
}

const failedStates: ReadonlySet<TaskState> = new Set<TaskState>(['TASK_STATE_FAILED', 'TASK_STATE_REJECTED']);

/** An error as a text without details, safe for any log. */
export function flawOf({ code }: RialtoError): string {
  return `${code}: ${errorCodes[code].title}`;
}

/** Errors of a task that did no work. It is rejected, not failed (abuse case 17). */
const rejecting: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['denied', 'tool_changed', 'approval_required']);

/**
 * The update that ends a task with an error: with the error's message when that is public, else with a generic text
 * (AN-22).
 */
export function failure(error: unknown): Extract<TaskUpdate, { status: unknown }> {
  const known = RialtoError.from(error);
  const text = errorCodes[known.code].public ? storableText(known.message, 1_000) : 'the agent failed';
  const { code } = known;
  const state = rejecting.has(code) ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
  const metadata = {
    errorCode: code,
    ...(code === 'outcome_unknown' && { ambiguous: true }),
    ...(code === 'approval_required' && approvalOf(known)),
  };
  return { status: { state, message: { parts: [{ text }], metadata } } };
}

/** The facts of an approval that is needed, for the caller of a rejected task. */
function approvalOf({ data = {} }: RialtoError): JsonObject {
  const { approvalId, approvalUrl, approvers, expiresAt } = data;
  return { approvalId, approvalUrl, approvers, expiresAt } as JsonObject;
}

/** The newest message of the caller; every task has one. */
export function newestMessage({ history }: { history: readonly Message[] }): Message {
  return history.findLast(({ role }) => role === 'ROLE_USER')!;
}
