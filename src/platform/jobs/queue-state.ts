import { Inject, Injectable } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import type { JobName } from '../../kernel/jobs.js';
import { QUEUES, type Queues } from './queues.js';

const answerTimeoutMs = 250;
const trustedMs = 10_000;

/** Reads the state of the queues, as far as they answer. */
@Injectable()
export class QueueState {
  private readonly lastAnswers = new Map<JobName, { isHeld: boolean; at: number }>();

  constructor(@Inject(QUEUES) private readonly queues: Queues) {}

  /**
   * True while an operator has paused a queue. A caller that does work without the queue must check this first, or a
   * pause would have no effect. The last answer of a queue that does not answer is trusted for 10 s; after that the
   * queue counts as lost and not as paused, so its work continues.
   */
  async isHeld(name: JobName): Promise<boolean> {
    const isHeld = await this.query(name, (queue) => queue.isPaused());
    if (isHeld !== undefined) this.lastAnswers.set(name, { isHeld, at: systemClock.elapsed() });
    const last = this.lastAnswers.get(name);
    return last !== undefined && last.isHeld && systemClock.elapsed() - last.at < trustedMs;
  }

  /** True when jobs wait that a worker should take. */
  async hasWaiting(name: JobName): Promise<boolean> {
    const waiting = await this.query(name, (queue) => queue.getWaitingCount());
    return waiting !== undefined && waiting > 0 && !(await this.isHeld(name));
  }

  /** Milliseconds until the next job of a scheduler is due; undefined when the queue knows none, or does not answer. */
  async nextDueMs(name: JobName, scheduler: string): Promise<number | undefined> {
    const known = await this.query(name, (queue) => queue.getJobScheduler(scheduler));
    return known?.next === undefined ? undefined : known.next - systemClock.now();
  }

  private query<Value>(name: JobName, question: (queue: Queue) => Promise<Value>): Promise<Value | undefined> {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, answerTimeoutMs, undefined).unref());
    return Promise.race([question(this.queues.get(name)!).catch(() => undefined), late]);
  }
}
