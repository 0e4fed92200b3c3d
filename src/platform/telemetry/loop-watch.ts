import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { systemClock, workedMs } from '../../kernel/clock.js';
import type { HttpWatch } from './http-watch.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';

const everyMs = 50;
/** Less is usual: a collection of garbage takes as long. */
const reportMs = 100;
/** From here on it is trouble: probes and other callers notice. */
const warnMs = 1_000;

/** Reports each time at which the event loop stood still, and what had begun last then: that is mostly what held it. */
export class LoopWatch implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer?: NodeJS.Timeout;
  private at = 0;
  private worked = 0;

  constructor(
    private readonly http: Pick<HttpWatch, 'latest'>,
    private readonly metrics: Metrics,
    private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.look();
    this.timer = setInterval(() => this.look(), everyMs).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const [now, worked] = [systemClock.elapsed(), workedMs()];
    const delay = this.timer ? now - this.at - everyMs : 0;
    if (delay > reportMs) this.report(delay, worked - this.worked);
    this.at = now;
    this.worked = worked;
  }

  /** @param worked of all threads: little of it means that the machine stood still, not this process. */
  private report(delay: number, worked: number): void {
    const latest = this.http.latest();
    // A start takes its time, and nobody waits yet.
    if (!latest || worked < delay / 2) return;
    const { route, org } = latest;
    this.metrics.loopDelay.observe({ route }, delay / 1_000);
    const rounded = { ms: Math.round(delay), workedMs: Math.round(worked) };
    const level = delay < warnMs ? 'info' : 'warn';
    this.log[level]({ ...rounded, route, org }, 'the event loop stood still; this request had begun last');
  }
}
