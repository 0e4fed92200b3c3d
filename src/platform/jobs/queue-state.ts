import type { Queue } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import type { JobName } from '../../kernel/jobs.js';

const answerMs = 250;
const believedMs = 10_000;

/** What the queues say of themselves, as far as they answer. */
export class QueueState {
  private readonly heard = new Map<JobName, { isHeld: boolean; at: number }>();

  constructor(private readonly queues: ReadonlyMap<JobName, Queue>) {}

  /**
   * Whether an operator holds a queue. Whoever does its work past the queue asks first, or a pause would be a lie. A queue that
   * does not answer is believed for a while, then counts as lost and not as held: its work goes on.
   */
  async isHeld(name: JobName): Promise<boolean> {
    const isHeld = await this.ask(name, (queue) => queue.isPaused());
    if (isHeld !== undefined) this.heard.set(name, { isHeld, at: systemClock.elapsed() });
    const heard = this.heard.get(name);
    return heard !== undefined && heard.isHeld && systemClock.elapsed() - heard.at < believedMs;
  }

  /** Whether jobs wait that somebody should take. */
  async hasWaiting(name: JobName): Promise<boolean> {
    const waiting = await this.ask(name, (queue) => queue.getWaitingCount());
    return waiting !== undefined && waiting > 0 && !(await this.isHeld(name));
  }

  private ask<Value>(name: JobName, question: (queue: Queue) => Promise<Value>): Promise<Value | undefined> {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, answerMs, undefined).unref());
    return Promise.race([question(this.queues.get(name)!).catch(() => undefined), late]);
  }
}
