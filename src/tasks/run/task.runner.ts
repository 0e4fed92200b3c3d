import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { TaskAgents } from '../../registry/task-agents.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import type { TaskExecutor } from '../executor.port.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import { leaseMs, renewMs, TaskLeases } from '../storage/task-lease.store.js';
import { TaskStore } from '../storage/task.store.js';
import { TaskExecutors } from '../task-executors.js';
import { ActiveRun, newestMessage } from './task-run.js';
import { placeOf } from '../task-verbs.js';
import type { StoredTask } from '../task.types.js';

const drainMs = 20_000;
const maxEarlierMessages = 100;

/** Runs tasks in this process, renews their leases, stops runs, and drains at shutdown. */
@Injectable()
export class TaskRunner implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly active = new Map<string, ActiveRun>();
  private draining?: Promise<void>;
  private readonly drained = new AbortController();
  private readonly timer = setInterval(() => void this.renew(), renewMs).unref();

  constructor(
    private readonly executors: TaskExecutors,
    private readonly agents: TaskAgents,
    private readonly store: TaskStore,
    private readonly leases: TaskLeases,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Aborts when this process has stopped working; requests that wait here then return the current task. */
  get over(): AbortSignal {
    return this.drained.signal;
  }

  /** True when this process is stopping and begins no more tasks from the queue. */
  get isDraining(): boolean {
    return this.draining !== undefined;
  }

  /** True when this process is working on a task. */
  isUnderWay(id: string): boolean {
    return this.active.get(id)?.isUnderWay ?? false;
  }

  executorOf(agent: PublishedAgent): TaskExecutor {
    return this.executors.ofKind(agent.executor.kind);
  }

  /** Starts the run of a live task. The run continues when its caller stops waiting. @param saves as in ActiveRun. */
  startRun(
    ctx: CallContext,
    agent: PublishedAgent,
    live: LiveTask,
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
      earlier: () => this.store.earlierMessages(task, maxEarlierMessages),
    };
    const onTrouble = (err: unknown): void => {
      this.log.warn({ err, taskId: task.id }, 'could not store a run; the task will be run again');
      void this.releaseWithRetries(live);
    };
    const active = new ActiveRun(live, executor, run, { saves, onTrouble });
    this.active.get(task.id)?.stop('lost');
    this.active.set(task.id, active);
    void active.ended.finally(() => {
      if (this.active.get(task.id) === active) this.active.delete(task.id);
      executor.rested?.(run);
    });
    // The request arrived before the shutdown signal. A run that has already replied needs no release.
    if (this.over.aborted && !active.reply) void this.releaseRuns([active]);
    return active;
  }

  @OnNotice('task.cancel-wished')
  cancelWished({ taskId }: Notice<'task.cancel-wished'>): void {
    this.active.get(taskId)?.stop('canceled');
  }

  /** Ends the outside work of a task after its cancel was committed. */
  async abandon(ctx: CallContext, task: StoredTask): Promise<void> {
    try {
      const found = await this.agents.agentOf(task);
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
    await this.releaseRuns([...this.active.values()].filter((run) => run.mayLeave));
    const late = sleep(drainMs, true, { ref: false });
    // A request that arrived before the shutdown signal may begin a run after it.
    for (let isLate = false; this.active.size > 0 && !isLate;) {
      const ended = Promise.all([...this.active.values()].map((run) => run.ended));
      isLate = await Promise.race([ended.then(() => false), late]);
    }
    this.drained.abort();
    await this.releaseRuns([...this.active.values()]);
  }

  /**
   * Releases a task after an error of the gateway, with retries: the task is due when the database is back, and not
   * only when the lease expires.
   */
  private async releaseWithRetries(live: LiveTask): Promise<void> {
    for (let pauseMs = 100; pauseMs < leaseMs && live.isStored && !this.draining; pauseMs *= 2) {
      await sleep(pauseMs, undefined, { ref: false });
      const done = await this.leases.release(live.task).then(
        () => true,
        () => false,
      );
      if (done) return;
    }
  }

  private async releaseRuns(runs: readonly ActiveRun[]): Promise<void> {
    for (const run of runs) run.stop('stopping');
    await Promise.allSettled(runs.map(({ live }) => live.save().then(() => this.leases.release(live.task))));
  }

  private async renew(): Promise<void> {
    const held = [...this.active.values()].filter(({ live }) => live.isStored && !live.atRest);
    if (held.length === 0) return;
    try {
      const renewed = await this.leases.renew(held.map(({ live }) => live.task.id));
      for (const run of held) if (!renewed.has(run.live.task.id) && !run.live.atRest) run.stop('lost');
    } catch (err) {
      this.log.warn({ err }, 'could not renew leases; other processes take over when they expire');
    }
  }
}
