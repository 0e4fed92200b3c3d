import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Nesting } from '../../policy/nesting.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { OpenTasks, type Whose } from '../storage/open-tasks.js';
import { senderKey, TaskLeases } from '../storage/task-lease.store.js';
import type { ActiveRun } from './task-run.js';
import { isSettled } from '../task-stream.service.js';
import type { StoredTask } from '../task.types.js';

const countMs = 1_000;
const retryAfterSeconds = 5;

/**
 * Limits the open tasks of each org, and of all orgs together (abuse case 36). No request waits for a count: each
 * process adds the tasks that it accepts to its last count, so several processes may accept slightly more than the
 * limit.
 */
@Injectable()
export class TaskQuota implements OnModuleDestroy {
  private readonly limits: { readonly perOrg: number; readonly all: number };
  private readonly open: OpenTasks;
  private counting?: Promise<void>;
  private readonly timer = setInterval(() => void this.countOpenTasks(), countMs).unref();

  constructor(
    private readonly leases: TaskLeases,
    private readonly metrics: Metrics,
    private readonly nesting: Nesting,
    @Inject(SETTINGS) settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    this.limits = { perOrg: settings.RIALTO_MAX_OPEN_TASKS_PER_ORG, all: settings.RIALTO_MAX_OPEN_TASKS };
    this.open = new OpenTasks(this.limits);
  }

  /**
   * Counts a new task, or one that continues after a question, as open while it is stored. Throws the errors of
   * `requireRoom`.
   */
  async admitTask<Stored>({ org, principal }: CallContext, store: () => Promise<Stored>): Promise<Stored> {
    this.requireRoom(org.id);
    const origin = { org: org.id, sender: senderKey(org.id, principal) };
    this.open.addUnstored(origin, systemClock.elapsed());
    try {
      return await store();
    } finally {
      this.open.arrived(origin);
    }
  }

  /** Throws `rate_limited` when an org has reached its limit, `unavailable` when all orgs together have. */
  requireRoom(org: OrgId): void {
    const full = this.open.reachedLimit(org, systemClock.elapsed());
    if (!full) return;
    const data = { retryAfterSeconds };
    if (full === 'all')
      throw new RialtoError('unavailable', { message: 'the gateway has too many open tasks; try again later', data });
    this.metrics.limited.inc({ scope: 'open tasks' });
    throw new RialtoError('rate_limited', { message: `the org has ${this.limits.perOrg} open tasks`, data });
  }

  /** Throws `rate_limited` when an owner has too many running tasks at an agent that may wait for one another. */
  async requireNoNest(org: OrgId, agent: AgentId, owner: string, waits: boolean): Promise<void> {
    this.nesting.requirePlace(await this.leases.countNested(org, agent, owner, this.nesting.besideMs), waits);
  }

  /**
   * Frees the place of an admitted task when its run here ends, unless it continues elsewhere. Most tasks end before
   * the next count.
   */
  freeAfter(run: ActiveRun): void {
    void run.ended.then(() => {
      const { task, lost } = run.live;
      if (run.reply || lost || run.canceled || isSettled(task.state)) this.open.ended(taskOrigin(task));
    });
  }

  /** Queue priority of a task; lower numbers go first. */
  lineOf(task: StoredTask): number {
    return this.open.lineOf(taskOrigin(task));
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.counting;
  }

  /** Runs one count at a time: a slow count is shared, not repeated. */
  private countOpenTasks(): Promise<void> {
    this.counting ??= this.recount().finally(() => (this.counting = undefined));
    return this.counting;
  }

  private async recount(): Promise<void> {
    const { orgs, backlogs, applyCounts } = this.open.toCount(systemClock.elapsed());
    if (orgs.length === 0) return;
    try {
      applyCounts(await this.leases.countOpen(orgs, backlogs, this.limits));
    } catch (err) {
      this.log.debug({ err }, 'could not count open tasks; the last count stays in use');
    }
  }
}

function taskOrigin({ orgId, principal }: StoredTask): Whose {
  return { org: orgId, sender: senderKey(orgId, principal) };
}
