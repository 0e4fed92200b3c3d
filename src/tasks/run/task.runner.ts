import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { TaskId } from '../../kernel/ids.js';
import type { Notice } from '../../kernel/notices.js';
import { Semaphore } from '../../kernel/semaphore.js';
import { VerbBus } from '../../kernel/verb-bus.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TaskAgents } from '../../registry/task-agents.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import type { TaskExecutor } from '../executor.port.js';
import { LiveTask } from '../lifecycle/live-task.js';
import { LiveTasks } from '../lifecycle/live-tasks.js';
import { TaskExecutors } from '../task-executors.js';
import { leaseMs, renewMs, senderKey, type Claimed, type Waiters } from '../storage/task-lease.store.js';
import { ActiveRun, attemptsSpent, failure, flawOf, newestMessage, senderGone, type Begun } from './task-run.js';
import { placeOf, submission } from '../task-verbs.js';
import type { StoredTask } from '../task.types.js';

const drainMs = 20_000;
const maxEarlierMessages = 100;
/** Runs of one org and of one of its callers here, at most; what they have beyond stays due, and nobody else waits for it. */
const mostRuns = { org: 125, sender: 100 };
/** Claims on their way count for no org yet. */
const claimsAtOnce = 16;

/** Runs tasks in this process: those it just received and those it claims. Renews, aborts, drains. */
@Injectable()
export class TaskRunner implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly active = new Map<string, ActiveRun>();
  /** How many runs orgs and senders have here. */
  private readonly runs = { org: new Map<string, number>(), sender: new Map<string, number>() };
  private readonly claims = new Semaphore(claimsAtOnce);
  private draining?: Promise<void>;
  private readonly drained = new AbortController();
  private readonly timer = setInterval(() => void this.renew(), renewMs).unref();

  constructor(
    private readonly lives: LiveTasks,
    private readonly executors: TaskExecutors,
    private readonly agents: TaskAgents,
    private readonly verbs: VerbBus,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Aborts when this process works no more: whoever waits here learns how far things are. */
  get over(): AbortSignal {
    return this.drained.signal;
  }

  executorOf(agent: PublishedAgent): TaskExecutor {
    return this.executors.of(agent.executor.kind);
  }

  /** Starts work on a live task; the run goes on whoever waits for it. @param saves as in ActiveRun. */
  start(
    live: LiveTask,
    agent: PublishedAgent,
    ctx: CallContext,
    saves: boolean,
    executor: Pick<TaskExecutor, 'execute' | 'leavesWork' | 'rested'> = this.executorOf(agent),
  ): ActiveRun {
    const { task } = live;
    const run = {
      ctx: {
        ...ctx,
        signal: undefined,
        lineage: { ...ctx.lineage, path: [...(ctx.lineage?.path ?? []), placeOf(agent)] },
      },
      agent,
      task,
      message: newestMessage(task),
      earlier: () => this.lives.store.earlierMessages(task, maxEarlierMessages),
    };
    const onTrouble = (err: unknown): void => {
      this.log.warn({ err, taskId: task.id }, 'a run could not be stored; the task is taken up again');
      void this.handBack(live);
    };
    const active = new ActiveRun(live, executor, run, { saves, onTrouble });
    this.active.get(task.id)?.stop('lost');
    this.active.set(task.id, active);
    this.count(task, 1);
    void active.ended.finally(() => {
      this.count(task, -1);
      if (this.active.get(task.id) === active) this.active.delete(task.id);
      executor.rested?.(run);
    });
    // A request that came before the signal; what was answered at once needs no task.
    if (this.over.aborted && !active.reply) void this.release([active]);
    return active;
  }

  /** Orgs and senders that have all the runs here that they get. */
  get waiting(): Waiters {
    const full = (kind: keyof typeof mostRuns): string[] =>
      [...this.runs[kind]].filter(([, runs]) => runs >= mostRuns[kind]).map(([key]) => key);
    return { orgs: full('org'), senders: full('sender') };
  }

  private count({ orgId, principal }: StoredTask, by: 1 | -1): void {
    for (const [all, key] of [
      [this.runs.org, orgId],
      [this.runs.sender, senderKey(orgId, principal)],
    ] as const) {
      const runs = (all.get(key) ?? 0) + by;
      if (runs > 0) all.set(key, runs);
      else all.delete(key);
    }
  }

  /** Claims a due task and begins to work on it; undefined when somebody else has it or there is nothing to do. */
  begin(id: TaskId, line = 0): Promise<Begun | undefined> {
    return this.claims.run(() => (this.draining ? Promise.resolve(undefined) : this.claim(id)), line);
  }

  private async claim(id: TaskId): Promise<Begun | undefined> {
    const claimed = await this.lives.leases.claim(id, this.waiting, this.active.get(id)?.isUnderWay);
    if (!claimed) return undefined;
    if (claimed.isTakenOver) this.metrics.takeovers.inc({ kind: 'tasks' });
    const live = this.lives.claimed(claimed.task);
    try {
      const { agent, ctx } = await this.admit(claimed);
      if (!this.draining) return this.start(live, agent, ctx, true);
      await this.lives.leases.release(claimed.task); // this process stopped meanwhile: another one begins
      return undefined;
    } catch (error) {
      const known = RialtoError.from(error);
      const refusal = known.code === 'unavailable' ? 'dispatchFailed' : 'markedFailed';
      if (refusal === 'dispatchFailed') await this.lives.leases.release(claimed.task);
      else {
        live.apply(failure(error));
        await live.save();
      }
      return { live, ended: Promise.resolve(), flaw: flawOf(known), refusal };
    }
  }

  /** What has to hold before a claimed task is worked on: rules may have changed since it was accepted (abuse case 17). */
  private async admit(claimed: Claimed): Promise<{ agent: PublishedAgent; ctx: CallContext }> {
    const { task } = claimed;
    const spent = attemptsSpent(claimed);
    if (spent) throw spent;
    const found = await this.agents.of(task);
    if (!found)
      throw new RialtoError('not_found', {
        message: 'the agent of this task is gone: its registration or publication was removed',
      });
    const { agent, isAdopted } = found;
    const ctx = contextOf(task, agent);
    const principal = await this.agents.senderOf(task, agent.org);
    if (!principal) throw senderGone();
    // Whoever called a registered agent is decided by its executor, before each look.
    if (!isAdopted && !(await this.verbs.permits(submission({ ...ctx, principal }, agent))))
      throw new RialtoError('denied', { message: 'its sender may no longer use this agent' });
    return { agent, ctx: { ...ctx, principal } };
  }

  @OnNotice('task.cancel-wished')
  cancelWished({ taskId }: Notice<'task.cancel-wished'>): void {
    this.active.get(taskId)?.stop('canceled');
  }

  /** After a cancel was committed: whatever its executor left outside of this house ends as well. */
  async abandon(ctx: CallContext, task: StoredTask): Promise<void> {
    try {
      const found = await this.agents.of(task);
      if (!found) return;
      const { agent } = found;
      const run = { ctx: { ...ctx, signal: undefined }, agent, task, message: newestMessage(task) };
      await this.executorOf(agent).abandon?.(run);
    } catch (err) {
      this.log.warn({ err, taskId: task.id }, 'what a canceled task left outside could not be ended');
    }
  }

  /** The first of the shutdown hooks: workers wait for the runs of their jobs, and these have a bounded time. */
  onModuleDestroy(): void {
    this.draining ??= this.drain();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.draining;
    clearInterval(this.timer);
  }

  /** Gives running tasks a bounded time, then lets go of them: another process goes on. */
  private async drain(): Promise<void> {
    await this.release([...this.active.values()].filter((run) => run.mayLeave));
    const late = sleep(drainMs, true, { ref: false });
    // A request that came before the signal may begin a run after it.
    for (let isLate = false; this.active.size > 0 && !isLate;) {
      const ended = Promise.all([...this.active.values()].map((run) => run.ended));
      isLate = await Promise.race([ended.then(() => false), late]);
    }
    this.drained.abort();
    await this.release([...this.active.values()]);
  }

  /** After trouble of our own: the task is due as soon as the database is back, and not when the lease is over. */
  private async handBack(live: LiveTask): Promise<void> {
    for (let pauseMs = 100; pauseMs < leaseMs && live.isStored && !this.draining; pauseMs *= 2) {
      await sleep(pauseMs, undefined, { ref: false });
      const done = await this.lives.leases.release(live.task).then(
        () => true,
        () => false,
      );
      if (done) return;
    }
  }

  private async release(runs: readonly ActiveRun[]): Promise<void> {
    for (const run of runs) run.stop('stopping');
    await Promise.allSettled(runs.map(({ live }) => live.save().then(() => this.lives.leases.release(live.task))));
  }

  private async renew(): Promise<void> {
    const held = [...this.active.values()].filter(({ live }) => live.isStored && !live.atRest);
    if (held.length === 0) return;
    try {
      const kept = await this.lives.leases.renew(held.map(({ live }) => live.task.id));
      for (const run of held) if (!kept.has(run.live.task.id) && !run.live.atRest) run.stop('lost');
    } catch (err) {
      this.log.warn({ err }, 'leases could not be renewed; others take over when they run out');
    }
  }
}

/** On whose behalf a task goes on when its request is over. */
function contextOf(task: Claimed['task'], agent: PublishedAgent): CallContext {
  const { id: requestId, principal, depth, lineage } = task;
  return {
    org: agent.org,
    principal,
    surface: 'system',
    requestId,
    depth,
    ...(lineage && { lineage, trace: lineage.trace }),
  };
}
