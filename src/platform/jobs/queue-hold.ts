import type { Queue } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';
import type { JobName } from '../../kernel/jobs.js';

const answerMs = 250;
const believedMs = 10_000;

/**
 * Whether an operator holds a queue. Whoever does its work past the queue asks first, or a pause would be a lie. A queue that does
 * not answer is believed for a while, then counts as lost and not as held: its work goes on.
 */
export class QueueHold {
  private readonly heard = new Map<JobName, { isHeld: boolean; at: number }>();

  constructor(private readonly queues: ReadonlyMap<JobName, Queue>) {}

  async isHeld(name: JobName): Promise<boolean> {
    const isHeld = await this.ask(name);
    if (isHeld !== undefined) this.heard.set(name, { isHeld, at: systemClock.elapsed() });
    const heard = this.heard.get(name);
    return heard !== undefined && heard.isHeld && systemClock.elapsed() - heard.at < believedMs;
  }

  private ask(name: JobName): Promise<boolean | undefined> {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, answerMs, undefined).unref());
    const answer = this.queues.get(name)?.isPaused();
    return Promise.race([answer?.catch(() => undefined), late]);
  }
}
