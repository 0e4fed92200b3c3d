import { DiscoveryService } from '@nestjs/core';
import type { JobName, JobPayload } from '../../kernel/jobs.js';
import type { JobFacts, JobRun } from './job-run.js';

/** A provider that does one kind of job; it claims the row first and may run twice. */
export interface JobHandler<Name extends JobName> {
  /**
   * Resolves with what the board shows as the result, as careful as the lines of a `JobRun`. Throws AttemptFailed for an attempt that failed
   * and is recorded as such.
   */
  handle(payload: JobPayload<Name>, run: JobRun): Promise<JobFacts | void>;
}

/** Marks the one handler of a job of the catalogue; the boot check finds a missing or a second one. */
export const HandlesJob = DiscoveryService.createDecorator<JobName>();

/** Work that repeats: finds due rows and rings for them, or does the work when the queue is silent. */
export interface Sweeper {
  /** Milliseconds between two sweeps. */
  readonly everyMs: number;
  sweep(): Promise<void>;
}

/** Marks a provider as a sweeper under a name; runs in the roles `all` and `worker`. */
export const Sweeps = DiscoveryService.createDecorator<string>();
