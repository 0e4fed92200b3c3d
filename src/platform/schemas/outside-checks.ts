import { fork, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../kernel/clock.js';
import type { Violation } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import type { SchemaAnswer, SchemaQuestion } from './schema-child.js';

interface Job extends Required<Omit<SchemaQuestion, 'schema'>> {
  readonly schema: JsonObject;
  readonly until: number;
  readonly done: (violations: readonly Violation[]) => void;
}

/** The process keeps its own limits of time. One that says nothing for so long is stuck, or nobody needs it: it is ended. */
const silentMs = 30_000;
const mostWaiting = 2_000;
const late: readonly Violation[] = [{ field: '', description: 'could not be checked in time' }];

/** MiB: what schemas and their patterns may take there. A thread would not do: out of memory, it takes this process with it. */
const mostMemory = 144;

/** A process that checks arguments by schemas that are costly to compile, one after the other, each org in turn. */
export class OutsideChecks {
  private child?: ChildProcess;
  private silence?: NodeJS.Timeout;
  private current?: Job;
  /** Jobs by org; the org whose turn is next comes first. */
  private readonly waiting = new Map<string, Job[]>();
  private readonly sent = new Set<number>();

  /** @param patienceMs how long a check may wait for its turn. */
  constructor(private readonly patienceMs = 5_000) {}

  /** @param key of the schema, the same for the same one. What has to wait too long breaks the schema: nobody knows that it does not. */
  violations(org: string, question: { key: number; schema: JsonObject; args: unknown }): Promise<readonly Violation[]> {
    const jobs = this.waiting.get(org) ?? [];
    if (jobs.length >= mostWaiting) return Promise.resolve(late);
    return new Promise((done) => {
      jobs.push({ ...question, until: systemClock.elapsed() + this.patienceMs, done });
      this.waiting.set(org, jobs);
      this.next();
    });
  }

  close(): void {
    const { child } = this;
    this.lost();
    child?.kill('SIGKILL');
  }

  private next(): void {
    if (this.current) return;
    const job = this.take();
    if (!job) return;
    this.current = job;
    this.child ??= this.started();
    this.ask(job, !this.sent.has(job.key));
  }

  /** The next that is in time; who is not is told so. */
  private take(): Job | undefined {
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

  private ask({ key, schema, args }: Job, isNew: boolean): void {
    this.sent.add(key);
    this.silence?.refresh();
    // What cannot be sent is answered by the end of the process.
    this.child!.send({ key, args, ...(isNew && { schema }) } satisfies SchemaQuestion, () => undefined);
  }

  private started(): ChildProcess {
    const child = fork(entry(), {
      env: {},
      execArgv: [`--max-old-space-size=${mostMemory}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.unref();
    child.channel?.unref();
    this.silence = setTimeout(() => child.kill('SIGKILL'), silentMs).unref();
    child.on('message', (answer: SchemaAnswer) => {
      if ('unknown' in answer) this.ask(this.current!, true);
      else this.finish(answer.violations);
    });
    child.on('error', () => undefined);
    child.once('exit', () => {
      if (this.child === child) this.lost();
    });
    return child;
  }

  /** Out of memory, most likely: what was asked stays unanswered, and the next one begins with a new process. */
  private lost(): void {
    clearTimeout(this.silence);
    this.child = undefined;
    this.sent.clear();
    this.finish(late);
  }

  private finish(violations: readonly Violation[]): void {
    const job = this.current;
    this.current = undefined;
    job?.done(violations);
    this.next();
  }
}

/** The program of the process. Tests run the sources; it needs what is built of them. */
function entry(): string {
  const own = fileURLToPath(import.meta.url);
  const program = own.replace(/outside-checks(\.[jt]s)$/, 'schema-child$1');
  const built = program.replace(`${sep}src${sep}`, `${sep}dist${sep}src${sep}`).replace(/\.ts$/, '.js');
  return own.endsWith('.ts') && existsSync(built) ? built : program;
}
