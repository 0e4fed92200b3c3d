import { RialtoError } from '../../kernel/errors.js';
import { timeoutSignal } from '../../kernel/abort.js';

/** How long a call waits for its turn, and what cancels the wait. */
export interface TurnWait {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

interface Waiter {
  readonly caller: string;
  readonly program: object;
  readonly grant: () => void;
}

const maxWaiting = 1_000;

/**
 * Limits how many programs each caller uses at once, so that hanging programs of one caller leave room for the calls of
 * others.
 */
export class ProgramShares {
  /** Number of running calls by caller and program. */
  private readonly calls = new Map<string, Map<object, number>>();
  private readonly waiting = new Set<Waiter>();

  /**
   * @param most maximum number of programs that one caller uses at once.
   * @param full creates the error for a call that waited in vain.
   */
  constructor(
    private readonly most: number,
    private readonly full: (most: number) => RialtoError,
  ) {}

  get isEmpty(): boolean {
    return this.calls.size === 0;
  }

  /**
   * Counts a call; the returned function ends the count. Waits while the caller already uses the maximum number of
   * other programs. Rejects with `unavailable` when there is no turn in time, and with `canceled` when the signal
   * aborts.
   */
  enter(caller: string, program: object, { timeoutMs, signal }: TurnWait): Promise<() => void> {
    if (this.mayUse(caller, program)) return Promise.resolve(this.useProgram(caller, program));
    if (signal?.aborted) return Promise.reject(new RialtoError('canceled'));
    if (this.waiting.size >= maxWaiting) return Promise.reject(this.full(this.most));
    const timeout = timeoutSignal(timeoutMs, [signal]);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.waiting.delete(waiter);
        timeout.end();
        reject(signal?.aborted ? new RialtoError('canceled') : this.full(this.most));
      };
      const grant = (): void => {
        this.waiting.delete(waiter);
        timeout.signal.removeEventListener('abort', leave);
        timeout.end();
        resolve(this.useProgram(caller, program));
      };
      const waiter: Waiter = { caller, program, grant };
      this.waiting.add(waiter);
      timeout.signal.addEventListener('abort', leave, { once: true });
    });
  }

  private mayUse(caller: string, program: object): boolean {
    const programs = this.calls.get(caller);
    return !programs || programs.size < this.most || programs.has(program);
  }

  private useProgram(caller: string, program: object): () => void {
    const programs = this.calls.get(caller) ?? new Map<object, number>();
    this.calls.set(caller, programs);
    programs.set(program, (programs.get(program) ?? 0) + 1);
    return () => {
      const left = programs.get(program)! - 1;
      if (left > 0) return void programs.set(program, left);
      programs.delete(program);
      if (programs.size === 0) this.calls.delete(caller);
      for (const each of this.waiting) if (each.caller === caller && this.mayUse(caller, each.program)) each.grant();
    };
  }
}
