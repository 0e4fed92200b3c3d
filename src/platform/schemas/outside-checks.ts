import { fork, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { systemClock } from '../../kernel/clock.js';
import type { Violation } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { packageRoot } from '../telemetry/version.js';
import type { SchemaAnswer, SchemaQuestion } from './schema-child.js';

/** Path of the child's program: always the built file, because Node cannot run the source. */
const entry = join(packageRoot, 'dist', 'src', 'platform', 'schemas', 'schema-child.js');

interface Job extends Required<Omit<SchemaQuestion, 'schema'>> {
  readonly schema: JsonObject;
  readonly until: number;
  readonly done: (violations: readonly Violation[]) => void;
}

/**
 * The process enforces its file time limits. When it sends nothing for so long, it is stuck or unused, and is killed.
 */
const silentMs = 30_000;
const maxWaiting = 2_000;
const late: readonly Violation[] = [{ field: '', description: 'could not be checked in time' }];

/**
 * MiB for schemas and their patterns in that process. A thread is not enough: when it runs out of memory, it ends
 * this process too.
 */
const maxMemory = 144;

/**
 * Checks arguments against schemas that are expensive to compile, in a separate process, one check at a time, each
 * org in turn.
 */
export class OutsideChecks {
  private child?: ChildProcess;
  private silence?: NodeJS.Timeout;
  private current?: Job;
  /** Jobs by org; the org with the next turn comes first. */
  private readonly waiting = new Map<string, Job[]>();
  private readonly sent = new Set<number>();

  /** @param timeoutMs how long a check may wait for its turn. */
  constructor(private readonly timeoutMs = 5_000) {}

  /**
   * Returns the violations of the schema. A check that waits too long counts as a violation, because the arguments
   * may be invalid.
   * @param question `key` identifies the schema; equal schemas have equal keys.
   */
  violations(org: string, question: { key: number; schema: JsonObject; args: unknown }): Promise<readonly Violation[]> {
    const jobs = this.waiting.get(org) ?? [];
    if (jobs.length >= maxWaiting) return Promise.resolve(late);
    return new Promise((done) => {
      jobs.push({ ...question, until: systemClock.elapsed() + this.timeoutMs, done });
      this.waiting.set(org, jobs);
      this.next();
    });
  }

  close(): void {
    const { child } = this;
    this.handleExit();
    child?.kill('SIGKILL');
  }

  private next(): void {
    if (this.current) return;
    const job = this.takeJob();
    if (!job) return;
    this.current = job;
    this.child ??= this.started();
    this.sendJob(job, !this.sent.has(job.key));
  }

  /** Takes the next job that is still in time; jobs that are too late are answered with `late`. */
  private takeJob(): Job | undefined {
    for (const [org, jobs] of this.waiting) {
      const job = jobs.shift();
      this.waiting.delete(org);
      if (jobs.length > 0) this.waiting.set(org, jobs);
      if (!job) continue;
      if (systemClock.elapsed() < job.until) return job;
      job.done(late);
    }
    return undefined;
  }

  private sendJob({ key, schema, args }: Job, isNew: boolean): void {
    this.sent.add(key);
    this.silence?.refresh();
    // When the send fails, the exit of the process answers the job.
    this.child!.send({ key, args, ...(isNew && { schema }) } satisfies SchemaQuestion, () => undefined);
  }

  private started(): ChildProcess {
    const child = fork(entry, {
      env: {},
      execArgv: [`--max-old-space-size=${maxMemory}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.unref();
    child.channel?.unref();
    this.silence = setTimeout(() => child.kill('SIGKILL'), silentMs).unref();
    child.on('message', (answer: SchemaAnswer) => {
      if ('unknown' in answer) this.sendJob(this.current!, true);
      else this.finishJob(answer.violations);
    });
    child.on('error', () => undefined);
    child.once('exit', () => {
      if (this.child === child) this.handleExit();
    });
    return child;
  }

  /**
   * Handles the exit of the process, most likely out of memory: the current job is answered with `late`, and the next
   * one starts a new process.
   */
  private handleExit(): void {
    clearTimeout(this.silence);
    this.child = undefined;
    this.sent.clear();
    this.finishJob(late);
  }

  private finishJob(violations: readonly Violation[]): void {
    const job = this.current;
    this.current = undefined;
    job?.done(violations);
    this.next();
  }
}
