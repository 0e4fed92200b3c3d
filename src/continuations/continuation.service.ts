import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, type OrgId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { TaskService } from '../tasks/task.service.js';
import { ContinuationListStore, type ContinuationRow, type Sight } from './storage/continuation-list.store.js';
import { ownerOf } from '../tasks/task.types.js';
import { ContinuationStore } from './storage/continuation.store.js';
import type { ContinuationQuery, ContinuationView } from './admin/continuation.types.js';

const lookAgainMs = 5_000;

/** Continuations for whoever looks after them: seen, hurried, given up. An admin sees those of the org, everyone else those of their own tasks. */
@Injectable()
export class ContinuationService {
  /** Orgs that have had one; of the others, when that was asked. */
  private readonly known = new Map<OrgId, number | true>();

  constructor(
    private readonly acts: AdminActs,
    private readonly rows: ContinuationListStore,
    private readonly store: ContinuationStore,
    private readonly tasks: TaskService,
    private readonly cursors: Cursors,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** The newest first. Throws `denied`, `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { limit, cursor, ...filter }: ContinuationQuery): Promise<Page<ContinuationView>> {
    return this.acts.read(ctx, 'continuation.list', async () => {
      const scope = `continuations:${JSON.stringify([sightOf(ctx), filter])}`;
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 2);
      const found = await this.rows.page(sightOf(ctx), filter, limit, after);
      const view = (row: ContinuationRow) => this.view(row);
      return pageOf(found, limit, view, ({ at, id }) => this.cursors.encode(scope, [at, id]));
    });
  }

  /** Throws `not_found`, also for one of somebody else. */
  get(ctx: CallContext, id: string): Promise<ContinuationView> {
    return this.acts.read(ctx, 'continuation.get', async () => this.view(await this.find(ctx, id)));
  }

  /** A worker takes it up now. Throws `not_found`, `conflict` when it is over. */
  async retry(ctx: CallContext, id: string): Promise<ContinuationView> {
    const row = await this.acts.write(ctx, 'continuation.retry', { id }, () => this.open(ctx, id));
    await this.tasks.wake(row.task_id, true);
    return this.view((await this.rows.find(sightOf(ctx), id)) ?? row);
  }

  /** Its task fails and its remote is told to stop. Throws `not_found`, `conflict` when it is over. */
  async fail(ctx: CallContext, id: string): Promise<ContinuationView> {
    const row = await this.acts.write(ctx, 'continuation.fail', { id }, () => this.open(ctx, id));
    await this.tasks.giveUp(ctx, row.task_id, `An operator gave up on the agent ${row.agent_slug}.`);
    await this.store.markGivenUp(row.id, 'given up by an operator');
    return this.view((await this.rows.find(sightOf(ctx), id)) ?? row);
  }

  /** Makes a worker take one up, whoever it belongs to. False when there is nothing to do. */
  async wake(id: string): Promise<boolean> {
    const taskId = isUuid(id) ? await this.rows.taskOf(id) : undefined;
    return taskId !== undefined && this.tasks.wake(taskId, true);
  }

  /** Whether any call of an org has ever become a task; asked of the database seldom. */
  async hasAny(org: OrgId): Promise<boolean> {
    const known = this.known.get(org);
    if (known === true) return true;
    const now = systemClock.elapsed();
    if (known !== undefined && now - known < lookAgainMs) return false;
    const found = await this.rows.hasAny(org);
    this.known.set(org, found || now);
    return found;
  }

  private async open(ctx: CallContext, id: string): Promise<ContinuationRow> {
    const row = await this.find(ctx, id);
    if (row.ended_at) throw new RialtoError('conflict', { message: 'the continuation is over', data: { id } });
    return row;
  }

  private async find(ctx: CallContext, id: string): Promise<ContinuationRow> {
    const row = isUuid(id) ? await this.rows.find(sightOf(ctx), id) : undefined;
    if (!row) throw new RialtoError('not_found', { message: 'no such continuation' });
    return row;
  }

  private view(row: ContinuationRow): ContinuationView {
    return {
      id: row.id,
      taskId: row.task_id,
      agentId: row.agent_id,
      agent: row.agent_slug,
      agentUrl: row.agent_url,
      remoteTaskId: row.remote_task_id,
      status: row.status,
      attempts: row.attempts,
      maxAttempts: this.settings.A2A_CONTINUATION_MAX_ATTEMPTS,
      polls: row.polls,
      deadlineAt: row.deadline_at.toISOString(),
      nextAt: row.next_at?.toISOString() ?? null,
      lastError: row.last_error,
      thread: row.thread_status && {
        status: row.thread_status,
        attempts: row.thread_attempts!,
        lastError: row.thread_error,
      },
      createdAt: row.created_at.toISOString(),
      endedAt: row.ended_at?.toISOString() ?? null,
    };
  }
}

function sightOf({ org, principal }: CallContext): Sight {
  return { org: org.id, owner: principal.role === 'admin' ? undefined : ownerOf(principal) };
}
