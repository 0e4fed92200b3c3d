import { systemClock } from '../../kernel/clock.js';
import type { Logger } from '../telemetry/logger.js';

/** One trouble is told so often: a queue that cannot be reached reports each of its tries, many a second. */
const everyMs = 5_000;

/** Reports lost connections of queues and workers, except those that a stop of this process ends. */
export class QueueTrouble {
  private stopping = false;
  private readonly told = new Map<string, { at: number; untold: number }>();

  constructor(private readonly log: Logger) {}

  report(queue: string, err: unknown): void {
    const { message, code } = err as { message?: string; code?: string };
    const now = systemClock.elapsed();
    const known = this.told.get(`${queue} ${code}`) ?? { at: -Infinity, untold: 0 };
    this.told.set(`${queue} ${code}`, known);
    known.untold++;
    if (now - known.at < everyMs) return;
    const times = known.untold > 1 ? { times: known.untold } : {};
    Object.assign(known, { at: now, untold: 0 });
    this.log[this.stopping ? 'debug' : 'warn']({ queue, code, reason: message, ...times }, 'queue connection trouble');
  }

  /** From now on lost connections are expected. */
  expect(): void {
    this.stopping = true;
  }
}
