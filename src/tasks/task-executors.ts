import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import type { TaskExecutor } from './executor.port.js';

/** Registry of executors by kind. Modules register their executors at startup. */
@Injectable()
export class TaskExecutors {
  private readonly byKind = new Map<string, TaskExecutor>();

  add(executor: TaskExecutor): void {
    if (this.byKind.has(executor.kind)) throw new Error(`executor '${executor.kind}' is already registered`);
    this.byKind.set(executor.kind, executor);
  }

  /** The executor of a kind. Throws `unavailable` for a kind that this version does not support. */
  ofKind(kind: string): TaskExecutor {
    const executor = this.byKind.get(kind);
    if (!executor) throw new RialtoError('unavailable', { message: `this version has no executor of kind ${kind}` });
    return executor;
  }
}
