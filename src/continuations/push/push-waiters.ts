import { Injectable } from '@nestjs/common';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';

/** Waits for pushes on behalf of a run that follows a remote task between two polls. */
export interface PushWaiter {
  /** Aborts at a push. */
  readonly signal: AbortSignal;
  /** Returns whether a push came since the last call of this method. */
  takePush(): boolean;
  close(): void;
}

/**
 * Notifies the runs of this process that follow a remote task when its agent pushed, at any process of the
 * deployment.
 */
@Injectable()
export class PushWaiters {
  private readonly waiters = new Map<string, Set<Waiter>>();

  add(taskId: string): PushWaiter {
    const waiters = this.waiters.get(taskId) ?? new Set();
    const waiter = new Waiter(() => {
      waiters.delete(waiter);
      if (waiters.size === 0) this.waiters.delete(taskId);
    });
    this.waiters.set(taskId, waiters.add(waiter));
    return waiter;
  }

  @OnNotice('continuation.rung')
  notify({ taskId }: Notice<'continuation.rung'>): void {
    for (const waiter of this.waiters.get(taskId) ?? []) waiter.notify();
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
