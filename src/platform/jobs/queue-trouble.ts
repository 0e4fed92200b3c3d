import { systemClock } from '../../kernel/clock.js';
import { Inject, Injectable } from '@nestjs/common';
import { LOGGER, type Logger } from '../telemetry/logger.js';

/**
 * Each kind of error is logged once in this interval: a queue that cannot be reached reports each of its tries, many
 * a second.
 */
const everyMs = 5_000;

/** Logs lost connections of queues and workers, except those that a stop of this process ends. */
@Injectable()
export class QueueTrouble {
  private stopping = false;
  private readonly logged = new Map<string, { at: number; unlogged: number }>();

  constructor(@Inject(LOGGER) private readonly log: Logger) {}

  logTrouble(queue: string, err: unknown): void {
    const { message, code } = err as { message?: string; code?: string };
    const now = systemClock.elapsed();
    const known = this.logged.get(`${queue} ${code}`) ?? { at: -Infinity, unlogged: 0 };
    this.logged.set(`${queue} ${code}`, known);
    known.unlogged++;
    if (now - known.at < everyMs) return;
    const times = known.unlogged > 1 ? { times: known.unlogged } : {};
    Object.assign(known, { at: now, unlogged: 0 });
    this.log[this.stopping ? 'debug' : 'warn']({ queue, code, reason: message, ...times }, 'a queue connection failed');
  }

  /** From now on lost connections are expected, because the process stops. */
  expect(): void {
    this.stopping = true;
  }
}
