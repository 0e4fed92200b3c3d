import { Inject, Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, type OrgId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { TaskService } from '../tasks/task.service.js';
import { ContinuationLogStore, type ContinuationRow, type Sight } from './storage/continuation-log.store.js';
import type { ContinuationQuery, ContinuationView } from './admin/continuation.types.js';

const recheckMs = 5_000;

/**
 * Reads and manages continuations for the admin API: list, retry, give up. An admin sees those of the org, every
 * other caller those of its own tasks.
 */
@Injectable()
export class ContinuationService {
  /** Whether an org has ever had a continuation: `true`, or the time of the last check that found none. */
  private readonly known = new Map<OrgId, number | true>();

  constructor(
    private readonly acts: AdminActs,
    private readonly rows: ContinuationLogStore,
    private readonly tasks: TaskService,
    private readonly cursors: Cursors,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /**
   * Lists continuations from the newest to the oldest. Throws `denied`, and `invalid_params` for a cursor of another
   * list.
   */
  list(ctx: CallContext, { limit, cursor, ...filter }: ContinuationQuery): Promise<Page<ContinuationView>> {
    return this.acts.read(ctx, 'continuation.list', async () => {
      const scope = `continuations:${JSON.stringify([visibleTo(ctx), filter])}`;
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 2);
      const found = await this.rows.findPage(visibleTo(ctx), filter, limit, after);
      const view = (row: ContinuationRow) => this.continuationView(row);
      return pageOf(found, limit, view, ({ at, id }) => this.cursors.encode(scope, [at, id]));
    });
  }

  /** Returns one continuation. Throws `not_found`, also when it belongs to another caller. */
  get(ctx: CallContext, id: string): Promise<ContinuationView> {
    return this.acts.read(ctx, 'continuation.get', async () =>
      this.continuationView(await this.requireVisible(ctx, id)),
    );
  }

  /** Makes a worker resume the continuation now. Throws `not_found`, and `conflict` when it has ended. */
  async retry(ctx: CallContext, id: string): Promise<ContinuationView> {
    const row = await this.acts.record(ctx, 'continuation.retry', { id }, () => this.requireOpen(ctx, id));
    await this.tasks.wake(row.taskId, true);
    return this.continuationView((await this.rows.find(visibleTo(ctx), id)) ?? row);
  }

  /** Fails the task and cancels the remote task. Throws `not_found`, and `conflict` when it has ended. */
  async giveUp(ctx: CallContext, id: string): Promise<ContinuationView> {
    const row = await this.acts.record(ctx, 'continuation.fail', { id }, () => this.requireOpen(ctx, id));
    await this.tasks.giveUpTask(ctx, row.taskId, `An operator gave up on the agent ${row.agentSlug}.`);
    await this.rows.markGivenUp(row.id, 'given up by an operator');
    return this.continuationView((await this.rows.find(visibleTo(ctx), id)) ?? row);
  }

  /** Makes a worker resume a continuation, without a check of its owner. False when there is nothing to do. */
  async wake(id: string): Promise<boolean> {
    const taskId = isUuid(id) ? await this.rows.findTaskId(id) : undefined;
    return taskId !== undefined && this.tasks.wake(taskId, true);
  }

  /** Whether any call of an org has ever become a task. Remembers the answer, and asks the database seldom. */
  async hasAny(org: OrgId): Promise<boolean> {
    const known = this.known.get(org);
    if (known === true) return true;
    const now = systemClock.elapsed();
    if (known !== undefined && now - known < recheckMs) return false;
    const hasAny = await this.rows.hasAny(org);
    this.known.set(org, hasAny || now);
    return hasAny;
  }

  private async requireOpen(ctx: CallContext, id: string): Promise<ContinuationRow> {
    const row = await this.requireVisible(ctx, id);
    if (row.endedAt) throw new RialtoError('conflict', { message: 'the continuation has already ended', data: { id } });
    return row;
  }

  private async requireVisible(ctx: CallContext, id: string): Promise<ContinuationRow> {
    const row = isUuid(id) ? await this.rows.find(visibleTo(ctx), id) : undefined;
    if (!row) throw new RialtoError('not_found', { message: 'no such continuation' });
    return row;
  }

  private continuationView(row: ContinuationRow): ContinuationView {
    return {
      id: row.id,
      taskId: row.taskId,
      agentId: row.agentId,
      agent: row.agentSlug,
      agentUrl: row.agentUrl,
      remoteTaskId: row.remoteTaskId,
      status: row.status,
      attempts: row.attempts,
      maxAttempts: this.settings.A2A_CONTINUATION_MAX_ATTEMPTS,
      polls: row.polls,
      deadlineAt: row.deadlineAt.toISOString(),
      nextAt: row.nextAt?.toISOString() ?? null,
      lastError: row.lastError,
      thread: row.threadStatus && {
        status: row.threadStatus,
        attempts: row.threadAttempts!,
        lastError: row.threadError,
      },
      createdAt: row.createdAt.toISOString(),
      endedAt: row.endedAt?.toISOString() ?? null,
    };
  }
}

function visibleTo({ org, principal }: CallContext): Sight {
  return { org: org.id, owner: principal.role === 'admin' ? undefined : callerOf(principal) };
}
