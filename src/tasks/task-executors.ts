import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import type { TaskExecutor } from './executor.port.js';

/** Who does the work, by kind. Rooms add theirs when they start. */
@Injectable()
export class TaskExecutors {
  private readonly byKind = new Map<string, TaskExecutor>();

  add(executor: TaskExecutor): void {
    if (this.byKind.has(executor.kind)) throw new Error(`the executor '${executor.kind}' is there already`);
    this.byKind.set(executor.kind, executor);
  }

  /** Throws `unavailable` for a kind that this version does not run. */
  of(kind: string): TaskExecutor {
    const executor = this.byKind.get(kind);
    if (!executor) throw new RialtoError('unavailable', { message: `there is no executor of kind ${kind}` });
    return executor;
  }
}
