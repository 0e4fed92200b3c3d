import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { storableText } from '../../kernel/json.js';
import type { Message } from '../../protocol/a2a/model.js';
import { wordOf, type TaskState } from '../../protocol/a2a/states.js';
import type { Said, TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import type { Claimed } from '../storage/task-lease.store.js';

/** Why a run ends before its work does. */
export type StopReason = 'canceled' | 'lost' | 'stopping';

/** How often a task is begun when whoever began it is lost: what takes down three takes down a fourth (F9, AN-78). */
const maxAttempts = 3;

/** Why a claimed task is not begun once more; undefined while it may be. */
export function attemptsSpent({ crashes }: Pick<Claimed, 'crashes'>): RialtoError | undefined {
  if (crashes < maxAttempts) return undefined;
  return new RialtoError('poisoned', {
    message: `exceeded ${maxAttempts} attempts: whoever worked on it was lost each time`,
  });
}

/** Nobody works any more for who was shut out since (abuse case 17). */
export function senderGone(): RialtoError {
  return new RialtoError('denied', { message: 'its sender has no access any more' });
}

/** Work on a claimed task that began here. */
export interface Begun {
  readonly live: LiveTask;
  /** Resolves when nothing further comes of it and everything is committed. Never rejects. */
  readonly ended: Promise<void>;
  /** What went wrong, once it ended: a code and its title, never what an agent said. */
  readonly flaw?: string;
  /** Why it was not begun after all. */
  readonly refusal?: 'markedFailed' | 'dispatchFailed';
}

/** One run of an executor over a live task, in this process. */
export class ActiveRun implements Begun {
  /** The whole answer, when the agent answered without a task. */
  reply?: Said;
  /** Resolves when nothing further comes from this run and everything of it is committed. Never rejects. */
  readonly ended: Promise<void>;
  isOver = false;
  private error?: RialtoError;
  private reason?: StopReason;
  /** Made when somebody asks for its signal: a run that is over at once is stopped by nobody. */
  private stopper?: AbortController;
  private saves: boolean;
  private readonly message: Message;

  /** @param saves commit each update; otherwise from `saveFromNow` on (decisions: fast path). */
  constructor(
    readonly live: LiveTask,
    private readonly executor: Pick<TaskExecutor, 'execute' | 'leavesWork'>,
    run: Omit<TaskRun, 'signal'>,
    { saves, onTrouble }: { saves: boolean; onTrouble: (error: unknown) => void },
  ) {
    this.saves = saves;
    this.message = run.message;
    const signal = (): AbortSignal => this.signal;
    const own = {
      get signal() {
        return signal();
      },
      ...run,
    };
    this.ended = this.work(own)
      .catch((error: unknown) => {
        this.error = new RialtoError('unavailable');
        onTrouble(error);
      })
      .finally(() => (this.isOver = true));
  }

  stop(reason: StopReason): void {
    this.reason ??= reason;
    this.stopper?.abort(this.reason);
  }

  /** Another process may go on with it from here. */
  get mayLeave(): boolean {
    return this.executor.leavesWork?.({ task: this.live.committed, message: this.message }) ?? false;
  }

  get stopped(): boolean {
    return this.reason !== undefined;
  }

  /** Whoever canceled it has committed its end. */
  get canceled(): boolean {
    return this.reason === 'canceled';
  }

  get flaw(): string | undefined {
    if (this.error) return flawOf(this.error);
    const { state } = this.live.committed;
    return failedStates.has(state) ? `${wordOf(state)}: the agent said so` : undefined;
  }

  /** Somebody works here: it neither rests nor was told to stop. */
  get isUnderWay(): boolean {
    return !this.isOver && !this.stopped && !this.live.atRest;
  }

  private get signal(): AbortSignal {
    if (!this.stopper) {
      this.stopper = new AbortController();
      if (this.reason) this.stopper.abort(this.reason);
    }
    return this.stopper.signal;
  }

  /** Commits what there is, and from now on each update. */
  saveFromNow(): Promise<void> {
    this.saves = true;
    return this.live.save();
  }

  private async work(run: TaskRun): Promise<void> {
    await this.attempt(run).catch((error: unknown) => {
      if (!this.live.refusal) throw error;
    });
    if (!this.live.refusal) return;
    // Begun anew it would come to the same: it ends instead, and whatever it left outside is not begun twice.
    this.error = this.live.refusal;
    this.live.apply(failure(this.error));
    await this.live.save();
  }

  private async attempt(run: TaskRun): Promise<void> {
    try {
      await this.consume(this.executor.execute(run));
      if (!this.live.atRest && !this.stopped && !this.reply)
        throw new RialtoError('internal', { message: 'the agent stopped without an answer' });
    } catch (error) {
      if (this.stopped || this.live.atRest || this.live.lost || this.live.refusal) return;
      // Trouble of our own says nothing about the work: whoever comes when the lease is over goes on with it (F20).
      const known = RialtoError.from(error);
      if (this.live.isStored && known.code === 'unavailable') throw error;
      this.error = known;
      this.live.apply(failure(error));
    }
    if (this.saves && !this.stopped) await this.live.save();
  }

  private async consume(updates: AsyncIterable<TaskUpdate> | Iterable<TaskUpdate>): Promise<void> {
    if (Symbol.iterator in updates) {
      // All there is, in one breath: it is committed together.
      for (const update of updates) if (!this.take(update)) return;
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
      const goesOn = this.take(next.value);
      if (this.saves) this.saveSoon();
      // What has to be remembered is, before the executor acts on it: a process that dies afterwards leaves it to the next (I5).
      if (goesOn && 'memo' in next.value && this.saves) await this.live.save();
      if (!goesOn) return void Promise.resolve(iterator.return?.()).catch(() => undefined);
    }
  }

  /** False when nothing after this update counts. */
  private take(update: TaskUpdate): boolean {
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

/** An error in words that may stand anywhere. */
export function flawOf({ code }: RialtoError): string {
  return `${code}: ${errorCodes[code].title}`;
}

/** An error as the end of a task: told when it may be told, else in plain words (AN-22). */
export function failure(error: unknown): Extract<TaskUpdate, { status: unknown }> {
  const known = RialtoError.from(error);
  const text = errorCodes[known.code].public ? storableText(known.message, 1_000) : 'the agent failed';
  const { code } = known;
  // What rules forbid was not tried and found wanting (abuse case 17).
  const state = code === 'denied' || code === 'tool_changed' ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
  const metadata = { errorCode: code, ...(code === 'outcome_unknown' && { ambiguous: true }) };
  return { status: { state, message: { parts: [{ text }], metadata } } };
}

/** The newest message of the caller; every task has one. */
export function newestMessage({ history }: { history: readonly Message[] }): Message {
  return history.findLast(({ role }) => role === 'ROLE_USER')!;
}
