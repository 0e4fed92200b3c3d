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
 * How many open tasks an org may have, and all of them together (abuse case 36). Nobody waits for a count: each process adds what
 * it takes to what it counted a moment ago, so several let in some more than one would.
 */
@Injectable()
export class TaskQuota implements OnModuleDestroy {
  private readonly most: { readonly perOrg: number; readonly all: number };
  private readonly open: OpenTasks;
  private counting?: Promise<void>;
  private readonly timer = setInterval(() => void this.count(), countMs).unref();

  constructor(
    private readonly leases: TaskLeases,
    private readonly metrics: Metrics,
    private readonly nesting: Nesting,
    @Inject(SETTINGS) settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    this.most = { perOrg: settings.RIALTO_MAX_OPEN_TASKS_PER_ORG, all: settings.RIALTO_MAX_OPEN_TASKS };
    this.open = new OpenTasks(this.most);
  }

  /** Takes the place of a new task, or of one that goes on after a question, while it is stored. Throws as `requireRoom` does. */
  async admit<Stored>({ org, principal }: CallContext, store: () => Promise<Stored>): Promise<Stored> {
    this.requireRoom(org.id);
    const whose = { org: org.id, sender: senderKey(org.id, principal) };
    this.open.opened(whose, systemClock.elapsed());
    try {
      return await store();
    } finally {
      this.open.arrived(whose);
    }
  }

  /** Throws `rate_limited` for an org that has all it may have, `unavailable` when all orgs together have. */
  requireRoom(org: OrgId): void {
    const full = this.open.full(org, systemClock.elapsed());
    if (!full) return;
    const data = { retryAfterSeconds };
    if (full === 'all') throw new RialtoError('unavailable', { message: 'too many tasks are open', data });
    this.metrics.limited.inc({ scope: 'open tasks' });
    throw new RialtoError('rate_limited', { message: `the org has ${this.most.perOrg} open tasks`, data });
  }

  /** Throws `rate_limited` when too many tasks of an owner at an agent are under way that may wait for one another. */
  async requireNoNest(org: OrgId, agent: AgentId, owner: string, waits: boolean): Promise<void> {
    this.nesting.requireRoom(await this.leases.countNested(org, agent, owner, this.nesting.besideMs), waits);
  }

  /** Gives the place of an admitted task back with the end of its run here, unless it goes on elsewhere: most are over before the next count. */
  freeAfter(run: ActiveRun): void {
    void run.ended.then(() => {
      const { task, lost } = run.live;
      if (run.reply || lost || run.canceled || isSettled(task.state)) this.open.ended(whoseOf(task));
    });
  }

  /** The line that a task stands in: those of the lines before go first. */
  lineOf(task: StoredTask): number {
    return this.open.lineOf(whoseOf(task));
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.counting;
  }

  /** One count at a time: a slow one is not joined by others. */
  private count(): Promise<void> {
    this.counting ??= this.recount().finally(() => (this.counting = undefined));
    return this.counting;
  }

  private async recount(): Promise<void> {
    const { orgs, backlogs, take } = this.open.toCount(systemClock.elapsed());
    if (orgs.length === 0) return;
    try {
      take(await this.leases.countOpen(orgs, backlogs, this.most));
    } catch (err) {
      this.log.debug({ err }, 'open tasks could not be counted; the last count stands');
    }
  }
}

function whoseOf({ orgId, principal }: StoredTask): Whose {
  return { org: orgId, sender: senderKey(orgId, principal) };
}
