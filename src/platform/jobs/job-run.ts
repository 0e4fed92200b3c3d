import type { Job } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';

/** Facts that the board shows: names with states, counts and codes. */
export type JobFacts = Readonly<Record<string, string | number>>;

/**
 * Information that the board shows of a job while a handler works on it: only ids, names, states and codes. It never
 * shows message content, because the operator of the queues sees the jobs of every org.
 */
export interface JobRun {
  /** True when an operator retried or promoted the job: the row is due now, also when it says otherwise. */
  readonly byHand: boolean;
  /** The priority class of the job. */
  readonly line: number;
  /** The time for which the job was scheduled, in milliseconds since 1970. */
  readonly scheduledAt: number;
  log(line: string): void;
  progress(facts: JobFacts): void;
}

/** The run of work that has no job, because a sweep does it. */
export const unseenRun: JobRun = {
  byHand: false,
  line: 0,
  scheduledAt: 0,
  log: () => undefined,
  progress: () => undefined,
};

/**
 * Thrown by a handler when its attempt failed and the failure is already recorded: the job shows it, and nothing is
 * logged again.
 */
export class AttemptFailed extends Error {
  /** @param reason is shown on the board; it must contain no secrets and no content. */
  constructor(reason: string) {
    super(reason);
    this.stack = '';
  }
}

/** Most failures that the reason of a job with several pieces of work names. */
const mostNamed = 5;

/**
 * Ends a job with several pieces of work: throws the error of one that could not be done, else `AttemptFailed` with the
 * first of the recorded failures.
 */
export function requireSuccess(ends: readonly PromiseSettledResult<unknown>[], failures: readonly string[]): void {
  const refused = ends.find((end) => end.status === 'rejected');
  if (refused) throw refused.reason;
  if (failures.length > 0) throw new AttemptFailed(failures.slice(0, mostNamed).join('; '));
}

/**
 * How long a run waits for the queue to store what the board shows. A queue that cannot be reached must not hold
 * finished work for long.
 */
const writeTimeoutMs = 5_000;
const slackMs = 1_000;

/** The run of a job from the queue. Writes that fail are dropped, because the row is the truth. */
export class QueuedRun implements JobRun {
  readonly byHand: boolean;
  readonly line: number;
  readonly scheduledAt: number;
  private logWrites?: Promise<unknown>;
  private progressWrites?: Promise<unknown>;

  constructor(private readonly job: Job) {
    const { delay = 0 } = job.opts;
    const isPromoted = delay > 0 && systemClock.now() < job.timestamp + delay - slackMs;
    // The queue itself never retries a job, so a second attempt was started by an operator.
    this.byHand = job.attemptsMade > 0 || isPromoted;
    this.line = job.opts.priority ?? 0;
    // The exact time of a scheduler's job is only in its id: `repeat:<scheduler>:<milliseconds>`.
    this.scheduledAt = job.repeatJobKey ? Number(job.id!.split(':').at(-1)) : job.timestamp + delay;
  }

  log(line: string): void {
    this.logWrites = after(this.logWrites, () => this.job.log(line));
  }

  progress(facts: JobFacts): void {
    this.progressWrites = after(this.progressWrites, () => this.job.updateProgress(facts));
  }

  /** Waits until the log lines and the progress are stored, so that they are there when the job shows as finished. */
  async settled(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, writeTimeoutMs).unref()));
    await Promise.race([Promise.all([this.logWrites, this.progressWrites]), late]);
    clearTimeout(timer);
  }
}

/** Runs the work in order; a failure does not stop the following ones. */
function after(before: Promise<unknown> | undefined, work: () => Promise<unknown>): Promise<unknown> {
  return (before ? before.then(work) : work()).catch(() => undefined);
}
