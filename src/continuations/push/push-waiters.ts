import { Injectable } from '@nestjs/common';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';

/** The ear of one who follows a remote task between two looks. */
export interface PushWaiter {
  /** Aborts at a push. */
  readonly signal: AbortSignal;
  /** Whether there was a push since the last time this was asked. */
  takePush(): boolean;
  close(): void;
}

/** Tells those of this process who follow a remote task that its agent pushed, through whatever process. */
@Injectable()
export class PushWaiters {
  private readonly waiters = new Map<string, Set<Waiter>>();

  add(taskId: string): PushWaiter {
    const ears = this.waiters.get(taskId) ?? new Set();
    const ear = new Waiter(() => {
      ears.delete(ear);
      if (ears.size === 0) this.waiters.delete(taskId);
    });
    this.waiters.set(taskId, ears.add(ear));
    return ear;
  }

  @OnNotice('continuation.rung')
  notify({ taskId }: Notice<'continuation.rung'>): void {
    for (const ear of this.waiters.get(taskId) ?? []) ear.notify();
  }
}

class Waiter implements PushWaiter {
  private pushed = new AbortController();

  constructor(readonly close: () => void) {}

  get signal(): AbortSignal {
    return this.pushed.signal;
  }

  notify(): void {
    this.pushed.abort();
  }

  takePush(): boolean {
    const { aborted } = this.pushed.signal;
    if (aborted) this.pushed = new AbortController();
    return aborted;
  }
}
