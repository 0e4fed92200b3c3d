import { DiscoveryService } from '@nestjs/core';
import type { JobName, JobPayload } from '../../kernel/jobs.js';
import type { JobFacts, JobRun } from './job-run.js';

/** Handles one kind of job. A handler claims the row first; it may run twice for a job. */
export interface JobHandler<Name extends JobName> {
  /**
   * Resolves with the result that the board shows; it must contain no secrets and no content, like the log lines of a
   * `JobRun`. Throws AttemptFailed for an attempt that failed and is recorded as failed.
   */
  handle(payload: JobPayload<Name>, run: JobRun): Promise<JobFacts | void>;
}

/** Marks the only handler of a job in the catalogue. The check at start finds a missing or a second handler. */
export const HandlesJob = DiscoveryService.createDecorator<JobName>();

/** Repeated work: finds due rows and enqueues jobs for them, or runs the work when the queue does not. */
export interface Sweeper {
  /** Milliseconds between two sweeps. */
  readonly everyMs: number;
  sweep(): Promise<void>;
}

/** Marks a provider as a sweeper with this name. It runs in the roles `all` and `worker`. */
export const Sweeps = DiscoveryService.createDecorator<string>();
