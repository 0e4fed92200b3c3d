import { Injectable } from '@nestjs/common';
import type { TaskId } from '../kernel/ids.js';
import { Pg } from '../platform/database/pg.js';
import { isGone, Presence } from '../platform/database/presence.js';
import { taskColumns, TaskStore, type TaskRow } from './task.store.js';
import { mostCounted, type Waiting } from '../platform/telemetry/metrics.js';
import type { StoredTask } from './task.types.js';

/** How long a holder is believed without renewing; renewed each `renewMs`. */
export const leaseMs = 15_000;
export const renewMs = 3_000;

/** A holder without a number is outside of this house: only its lease tells whether it is there. */
const isFree = `(t.lease_until is null or t.lease_until < now() or (t.lease_owner is not null and ${isGone('t.lease_owner')}))`;
const isDue = `t.next_at <= now() and t.status_state in ('submitted', 'working')`;

/** A claimed task, and how often its holder was lost before, the last time just now. */
export interface Claimed {
  readonly task: StoredTask;
  readonly crashes: number;
  readonly isTakenOver?: boolean;
}

/** @see TaskLeases.findDue */
export interface DueTask {
  readonly id: TaskId;
  /** Somebody worked on it who is gone, or was silent for too long. */
  readonly isOrphan: boolean;
}

/** Who works on which task: claims, renewals, releases, by the clock of the database (reliability 4.3). */
@Injectable()
export class TaskLeases {
  constructor(
    private readonly pg: Pg,
    private readonly presence: Presence,
    private readonly tasks: TaskStore,
  ) {}

  /** The number of this process. */
  get holder(): number {
    return this.presence.id;
  }

  /**
   * Takes a due task that nobody holds: undefined when there is none of this id, or it is of an org that has to wait. The next
   * epoch is ours.
   */
  async claim(id: TaskId, waiting: readonly string[] = []): Promise<Claimed | undefined> {
    const rows = await this.pg.rows<TaskRow & { crashes: number; taken_over: boolean }>(
      'task-claim',
      `update a2a_tasks t set lease_owner = $2, lease_until = now() + ${leaseMs} * interval '1 millisecond', lease_epoch = t.lease_epoch + 1,
         crashes = t.crashes + (case when t.lease_until is null then 0 else 1 end), updated_at = now()
       from (select b.id, b.lease_until from a2a_tasks b where b.id = $1) before
       where t.id = before.id and ${isDue} and ${isFree} and t.org_id <> all($3::uuid[])
       returning ${taskColumns}, t.crashes, before.lease_until is not null as taken_over`,
      [id, this.presence.id, waiting],
    );
    const [task] = await this.tasks.fold(rows);
    return task && { task, crashes: rows[0]!.crashes, isTakenOver: rows[0]!.taken_over };
  }

  /** Of the tasks this process works on, those it still holds. */
  async renew(ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.pg.rows<{ id: string }>(
      'task-renew',
      `update a2a_tasks t set lease_until = now() + ${leaseMs} * interval '1 millisecond'
       where t.id = any($1::uuid[]) and t.lease_owner = $2 returning t.id`,
      [ids, this.presence.id],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Lets go of a task without an end: it is due at once for whoever comes. */
  async release({ id, epoch }: Pick<StoredTask, 'id' | 'epoch'>): Promise<void> {
    await this.pg.rows(
      'task-release',
      `update a2a_tasks set lease_owner = null, lease_until = null, next_at = now() where id = $1 and lease_epoch = $2 and lease_owner = $3`,
      [id, epoch, this.presence.id],
    );
  }

  /**
   * Tasks that waited or were worked on for longer than they may, in milliseconds. Those that somebody outside may fetch
   * later (due far ahead) do not wait in a queue.
   */
  findOverdue(most: { queued: number; working: number }, limit: number): Promise<{ id: TaskId; state: string }[]> {
    return this.pg.rows<{ id: TaskId; state: string }>(
      'task-overdue',
      `select t.id, t.status_state as state from a2a_tasks t where t.next_at is not null and (
         (t.status_state = 'submitted' and t.next_at <= now() and t.status_timestamp < now() - $1 * interval '1 millisecond')
         or (t.status_state = 'working' and t.next_at < now() + interval '1 hour' and t.status_timestamp < now() - $2 * interval '1 millisecond')) order by t.next_at limit $3`,
      [most.queued, most.working, limit],
    );
  }

  /** Makes a task that was put off due now. */
  async hurry(id: TaskId): Promise<void> {
    await this.pg.rows(
      'task-hurry',
      `update a2a_tasks t set next_at = now() where t.id = $1 and t.status_state in ('submitted', 'working') and t.next_at > now() and ${isFree}`,
      [id],
    );
  }

  /** True when a task is due and nobody works on it. */
  async isWaiting(id: TaskId): Promise<boolean> {
    const rows = await this.pg.rows(
      'task-waiting',
      `select from a2a_tasks t where t.id = $1 and ${isDue} and ${isFree}`,
      [id],
    );
    return rows.length > 0;
  }

  /** What is due and held by nobody, for how long. */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'task-waits',
      `select count(*)::int as count, coalesce(extract(epoch from now() - min(due.next_at)), 0)::float8 as "lagSeconds"
       from (select t.next_at from a2a_tasks t where ${isDue} and ${isFree} order by t.next_at limit ${mostCounted}) due`,
    );
    return row!;
  }

  /** Due tasks that nobody works on, oldest first, without those of orgs that have to wait. */
  findDue(limit: number, waiting: readonly string[] = []): Promise<DueTask[]> {
    return this.pg.rows<DueTask>(
      'task-due',
      `select t.id, t.lease_until is not null as "isOrphan" from a2a_tasks t where ${isDue} and ${isFree} and t.org_id <> all($2::uuid[]) order by t.next_at limit $1`,
      [limit, waiting],
    );
  }
}
