import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { systemClock, workedMs } from '../../kernel/clock.js';
import { HttpWatch } from './http-watch.js';
import { LOGGER, type Logger } from './logger.js';
import { Metrics } from './metrics.js';

const everyMs = 50;
/** Shorter delays are normal: a garbage collection takes as long. */
const reportMs = 100;
/** From this delay on, probes and other callers notice. */
const warnMs = 1_000;

/**
 * Reports each time the event loop was blocked, with the request that began last, because that request usually
 * blocked it.
 */
@Injectable()
export class LoopWatch implements OnApplicationBootstrap, OnApplicationShutdown {
  private timer?: NodeJS.Timeout;
  private at = 0;
  private worked = 0;

  constructor(
    @Inject(HttpWatch) private readonly http: Pick<HttpWatch, 'latest'>,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.checkDelay();
    this.timer = setInterval(() => this.checkDelay(), everyMs).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  private checkDelay(): void {
    const [now, worked] = [systemClock.elapsed(), workedMs()];
    const delay = this.timer ? now - this.at - everyMs : 0;
    if (delay > reportMs) this.reportDelay(delay, worked - this.worked);
    this.at = now;
    this.worked = worked;
  }

  /**
   * @param worked processor time of all threads. Little of it means that the machine stood still, not this process.
   */
  private reportDelay(delay: number, worked: number): void {
    const latest = this.http.latest();
    // A start may take its time: no request waits yet.
    if (!latest || worked < delay / 2) return;
    const { route, org } = latest;
    this.metrics.loopDelay.observe({ route }, delay / 1_000);
    const rounded = { ms: Math.round(delay), workedMs: Math.round(worked) };
    const level = delay < warnMs ? 'info' : 'warn';
    this.log[level]({ ...rounded, route, org }, 'the event loop was blocked; this request began last');
  }
}
