import type { Job } from 'bullmq';
import { systemClock } from '../../kernel/clock.js';

/** Names with states, counts and codes. */
export type JobFacts = Readonly<Record<string, string | number>>;

/**
 * What the board shows of a job while a handler works on it. Ids, names, states and codes only, never what was said: whoever
 * operates the queues reads it, whatever org it is of.
 */
export interface JobRun {
  /** An operator retried or promoted it: the row is due now, whatever it says. */
  readonly byHand: boolean;
  /** The line that it was rung for in, and that it stands in here too. */
  readonly line: number;
  log(line: string): void;
  progress(facts: JobFacts): void;
}

/** Of work that no job was made for: a sweep does it. */
export const unseenRun: JobRun = { byHand: false, line: 0, log: () => undefined, progress: () => undefined };

/** Thrown by a handler when its attempt failed and all of it is recorded: the job shows it, and nobody has to be told again. */
export class AttemptFailed extends Error {
  /** @param reason what the board shows; as careful as the lines of a `JobRun`. */
  constructor(reason: string) {
    super(reason);
    this.stack = '';
  }
}

/** How long a run waits for the queue to keep what the board shows; a queue that is gone must not hold finished work for long. */
const writingMs = 5_000;
const slackMs = 1_000;

/** The run of a job of the queue. What cannot be written is left out: the row is the truth. */
export class QueuedRun implements JobRun {
  readonly byHand: boolean;
  readonly line: number;
  private lines?: Promise<unknown>;
  private shown?: Promise<unknown>;

  constructor(private readonly job: Job) {
    const { delay = 0 } = job.opts;
    const isPromoted = delay > 0 && systemClock.now() < job.timestamp + delay - slackMs;
    // Nothing is tried twice by the queue itself, so whoever did that is a person.
    this.byHand = job.attemptsMade > 0 || isPromoted;
    this.line = job.opts.priority ?? 0;
  }

  log(line: string): void {
    this.lines = after(this.lines, () => this.job.log(line));
  }

  progress(facts: JobFacts): void {
    this.shown = after(this.shown, () => this.job.updateProgress(facts));
  }

  /** Before the job ends: what was said is there when it shows as finished. */
  async settled(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, writingMs).unref()));
    await Promise.race([Promise.all([this.lines, this.shown]), late]);
    clearTimeout(timer);
  }
}

/** In order, and one that fails keeps none back. */
function after(before: Promise<unknown> | undefined, work: () => Promise<unknown>): Promise<unknown> {
  return (before ? before.then(work) : work()).catch(() => undefined);
}
