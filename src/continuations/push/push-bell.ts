import { Injectable } from '@nestjs/common';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';

/** The ear of one who follows a remote task between two looks. */
export interface PushEar {
  /** Aborts at a push. */
  readonly signal: AbortSignal;
  /** Whether there was a push since the last time this was asked. */
  heard(): boolean;
  close(): void;
}

/** Tells those of this process who follow a remote task that its agent pushed, through whatever process. */
@Injectable()
export class PushBell {
  private readonly ears = new Map<string, Set<Ear>>();

  listen(taskId: string): PushEar {
    const ears = this.ears.get(taskId) ?? new Set();
    const ear = new Ear(() => {
      ears.delete(ear);
      if (ears.size === 0) this.ears.delete(taskId);
    });
    this.ears.set(taskId, ears.add(ear));
    return ear;
  }

  @OnNotice('continuation.rung')
  ring({ taskId }: Notice<'continuation.rung'>): void {
    for (const ear of this.ears.get(taskId) ?? []) ear.ring();
  }
}

class Ear implements PushEar {
  private rung = new AbortController();

  constructor(readonly close: () => void) {}

  get signal(): AbortSignal {
    return this.rung.signal;
  }

  ring(): void {
    this.rung.abort();
  }

  heard(): boolean {
    const { aborted } = this.rung.signal;
    if (aborted) this.rung = new AbortController();
    return aborted;
  }
}
