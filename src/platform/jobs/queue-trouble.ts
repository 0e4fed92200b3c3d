import type { Logger } from '../telemetry/logger.js';

/** Reports lost connections of queues and workers, except those that a stop of this process ends. */
export class QueueTrouble {
  private stopping = false;

  constructor(private readonly log: Logger) {}

  report(queue: string, err: unknown): void {
    const { message, code } = err as { message?: string; code?: string };
    this.log[this.stopping ? 'debug' : 'warn']({ queue, code, reason: message }, 'queue connection trouble');
  }

  /** From now on lost connections are expected. */
  expect(): void {
    this.stopping = true;
  }
}
