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
/**
 * Most runs of one org, and of one of its callers, in this process. Further tasks stay due, and other orgs and callers
 * do not wait for them.
 */
const mostRuns = { org: 125, sender: 100 };
/** Most claims at the same time. A claim in progress is not yet counted for its org. */
const claimsAtOnce = 16;

/**
 * Runs tasks in this process: those it has just received and those it claims. Renews their leases, stops runs, and
 * drains at shutdown.
 */
@Injectable()
export class TaskRunner implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly active = new Map<string, ActiveRun>();
  /** Number of runs in this process, by org and by sender. */
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

  /** Aborts when this process has stopped working; requests that wait here then return the current task. */
  get over(): AbortSignal {
    return this.drained.signal;
  }

  executorOf(agent: PublishedAgent): TaskExecutor {
    return this.executors.of(agent.executor.kind);
  }

  /** Starts the run of a live task. The run continues when its caller stops waiting. @param saves as in ActiveRun. */
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
      this.log.warn({ err, taskId: task.id }, 'could not store a run; the task will be run again');
      void this.releaseWithRetries(live);
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
    // The request arrived before the shutdown signal. A run that has already replied needs no release.
    if (this.over.aborted && !active.reply) void this.release([active]);
    return active;
  }

  /** Orgs and senders that have reached their limit of runs in this process. */
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

  /** Claims a due task and starts its run; undefined when another process has it or there is nothing to do. */
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
      // this process began to stop meanwhile; another one begins the task
      await this.lives.leases.release(claimed.task);
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

  /** Checks a claimed task before its run: rules may have changed since it was accepted (abuse case 17). */
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
    // For a call to a registered agent, its executor checks the permission before each poll.
    if (!isAdopted && !(await this.verbs.permits(submission({ ...ctx, principal }, agent))))
      throw new RialtoError('denied', { message: 'the sender of the task may no longer use this agent' });
    return { agent, ctx: { ...ctx, principal } };
  }

  @OnNotice('task.cancel-wished')
  cancelWished({ taskId }: Notice<'task.cancel-wished'>): void {
    this.active.get(taskId)?.stop('canceled');
  }

  /** Ends the outside work of a task after its cancel was committed. */
  async abandon(ctx: CallContext, task: StoredTask): Promise<void> {
    try {
      const found = await this.agents.of(task);
      if (!found) return;
      const { agent } = found;
      const run = { ctx: { ...ctx, signal: undefined }, agent, task, message: newestMessage(task) };
      await this.executorOf(agent).abandon?.(run);
    } catch (err) {
      this.log.warn({ err, taskId: task.id }, 'could not end the outside work of a canceled task');
    }
  }

  /** The first shutdown hook: queue workers wait for the runs of their jobs, and those have a bounded time. */
  onModuleDestroy(): void {
    this.draining ??= this.drain();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.draining;
    clearInterval(this.timer);
  }

  /** Waits a bounded time for active runs, then releases them, so that other processes continue them. */
  private async drain(): Promise<void> {
    await this.release([...this.active.values()].filter((run) => run.mayLeave));
    const late = sleep(drainMs, true, { ref: false });
    // A request that arrived before the shutdown signal may begin a run after it.
    for (let isLate = false; this.active.size > 0 && !isLate;) {
      const ended = Promise.all([...this.active.values()].map((run) => run.ended));
      isLate = await Promise.race([ended.then(() => false), late]);
    }
    this.drained.abort();
    await this.release([...this.active.values()]);
  }

  /**
   * Releases a task after an error of the gateway, with retries: the task is due when the database is back, and not
   * only when the lease expires.
   */
  private async releaseWithRetries(live: LiveTask): Promise<void> {
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
      const renewed = await this.lives.leases.renew(held.map(({ live }) => live.task.id));
      for (const run of held) if (!renewed.has(run.live.task.id) && !run.live.atRest) run.stop('lost');
    } catch (err) {
      this.log.warn({ err }, 'could not renew leases; other processes take over when they expire');
    }
  }
}

/** The caller context for work after the request is over. */
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
