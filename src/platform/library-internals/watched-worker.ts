import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker, type Job, type JobJson } from 'bullmq';
import { doubled } from '../../kernel/backoff.js';
import { systemClock } from '../../kernel/clock.js';

/** Longest pause between two tries at a queue that fails to give jobs. */
const retryPause = { firstMs: 50, mostMs: 1_000 };

/**
 * A worker that knows when it last requested a job, and how many jobs it runs. BullMQ has no event for either, so this
 * class overrides protected methods.
 *
 * Requested upstream: https://github.com/taskforcesh/bullmq/issues/4656 (open), closing a worker without its Redis.
 * Missing public API: an event for each request for a job, and a pause before a retry after every error of a request
 * (the option `runRetryDelay` applies only to a refused or closed connection).
 * Canary test: `test/medium/library-internals.spec.ts`.
 */
export class WatchedWorker extends Worker {
  private requestedAt = systemClock.elapsed();
  private busy = 0;
  private readonly idle = new EventEmitter();
  private readonly leaving = new AbortController();
  private failures = 0;

  /**
   * Milliseconds since the last request for a job; 0 while all its slots are busy, because it then has no reason to
   * request one.
   */
  get silentMs(): number {
    return this.busy < this.concurrency ? systemClock.elapsed() - this.requestedAt : 0;
  }

  /**
   * Closes the worker. When its queue cannot be reached, its connection never ends; then the worker disconnects
   * without waiting for it.
   */
  async leave(jobsMs: number, leaveMs: number): Promise<void> {
    this.leaving.abort();
    const closed = this.close().then(() => true);
    const late = (ms: number): Promise<boolean> => sleep(ms, false, { ref: false });
    const isClosed = await Promise.race([closed, late(jobsMs), this.whenIdle().then(() => late(leaveMs))]);
    if (!isClosed) void this.disconnect().catch(() => undefined);
  }

  private async whenIdle(): Promise<void> {
    if (this.busy > 0) await once(this.idle, 'idle');
  }

  /**
   * Waits before a retry: BullMQ retries errors other than a refused connection at once, thousands of times a second.
   */
  protected override async moveToActive(token: string, name?: string): Promise<Job> {
    try {
      const job = await super.moveToActive(token, name);
      this.failures = 0;
      return job;
    } catch (error) {
      const pauseMs = doubled(++this.failures, retryPause);
      await sleep(pauseMs, undefined, { ref: false, signal: this.leaving.signal }).catch(() => undefined);
      throw error;
    }
  }

  protected override nextJobFromJobData(data?: JobJson, id?: string, token?: string) {
    this.requestedAt = systemClock.elapsed();
    return super.nextJobFromJobData(data, id, token);
  }

  protected override async callProcessJob(job: Job, token: string, signal?: AbortSignal): Promise<unknown> {
    this.busy++;
    try {
      return (await super.callProcessJob(job, token, signal)) as unknown;
    } finally {
      this.requestedAt = systemClock.elapsed();
      if (--this.busy === 0) this.idle.emit('idle');
    }
  }
}
