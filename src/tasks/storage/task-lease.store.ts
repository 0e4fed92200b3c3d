import { Injectable } from '@nestjs/common';
import type { Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { textByKey, timeByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import { backlogFrom, everybody } from './open-tasks.js';
import { taskColumns, TaskStore, type TaskRow } from './task.store.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';
import { ownerOf, type StoredTask } from '../task.types.js';

/** How long a holder is believed without renewing; renewed each `renewMs`. */
export const leaseMs = 15_000;
export const renewMs = 3_000;

/** Since when a task is in its state, by the clock of the database. */
export const lastsSince = 'coalesce(t.status_since, t.created_at)';
const isDue = `t.next_at <= now() and t.status_state in ('submitted', 'working')`;
const isDueByKey = `${timeByKey('t.next_at')} <= now() and ${textByKey('t.status_state')} in ('submitted', 'working')`;

/** Orgs with open tasks, each by one step along the index. */
const openOrgs = `with recursive step as (
    (select t.org_id from a2a_tasks t where t.next_at is not null order by t.org_id limit 1)
    union all
    select (select t.org_id from a2a_tasks t where t.next_at is not null and t.org_id > step.org_id order by t.org_id limit 1)
    from step where step.org_id is not null),
  org as (select org_id from step where org_id is not null)`;
/** How many tasks of an org are looked at for whose they are. */
const firstOfBacklog = 1_000;
/** What an org gets of a sweep at least, however many orgs there are. */
const leastPerOrg = 20;

/** A claimed task, and how often its holder was lost before, the last time just now. */
export interface Claimed {
  readonly task: StoredTask;
  readonly crashes: number;
  readonly isTakenOver?: boolean;
}

/** Whose tasks are left alone for now. */
export interface Waiters {
  readonly orgs: readonly string[];
  /** Each a `senderKey`. */
  readonly senders: readonly string[];
}
const nobody: Waiters = { orgs: [], senders: [] };

/** Names a caller of an org, as `senderOf` does in SQL. */
export function senderKey(org: OrgId, principal: Principal): string {
  return `${org} ${ownerOf(principal)}`;
}
const senderOf = `t.org_id || ' ' || t.owner`;

interface Wish {
  readonly id: TaskId;
  readonly waiting: Waiters;
  readonly isOurs: boolean;
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
  private readonly claims = new GroupCommit((wishes: Wish[]) => this.claimAll(wishes), { keysOf: ({ id }) => [id] });

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
   * Takes a due task that nobody holds: undefined when there is none of this id, or its org or sender has to wait. The next
   * epoch is ours. @param isOurs this process works on it: as long as the row says so too, a lease that ran out is no loss.
   */
  claim(id: TaskId, waiting = nobody, isOurs = false): Promise<Claimed | undefined> {
    return this.claims.commit({ id, waiting, isOurs });
  }

  /**
   * A row that is locked is being claimed or changed by somebody else, and is not waited for. What this process let slip itself
   * is no crash: it is there.
   */
  private async claimAll(wishes: readonly Wish[]): Promise<(Claimed | undefined)[]> {
    const { waiting } = wishes.at(-1)!;
    const rows = await this.pg.rows<TaskRow & { crashes: number; taken_over: boolean }>(
      'task-claim',
      `update a2a_tasks t set lease_owner = $2, lease_until = now() + ${leaseMs} * interval '1 millisecond', lease_epoch = t.lease_epoch + 1,
         crashes = t.crashes + (case when t.lease_until is null or t.lease_owner = $2 then 0 else 1 end), updated_at = now()
       from (select b.id, b.lease_until, b.lease_owner from a2a_tasks b where b.id = any($1::uuid[]) for update skip locked) before
       where t.id = before.id and ${isDueByKey} and ${isFree('t', { self: '$2', trust: '$5' })} and t.org_id <> all($3::uuid[]) and ${senderOf} <> all($6::text[])
         and (t.lease_owner is distinct from $2 or t.id <> all($4::uuid[]))
       returning ${taskColumns}, t.crashes, before.lease_until is not null and before.lease_owner is distinct from $2 as taken_over`,
      [
        wishes.map(({ id }) => id),
        this.presence.id,
        waiting.orgs,
        wishes.filter(({ isOurs }) => isOurs).map(({ id }) => id),
        this.presence.trust,
        waiting.senders,
      ],
    );
    const tasks = await this.tasks.fold(rows);
    const claimed = new Map(
      tasks.map((task, index) => {
        const { crashes, taken_over: isTakenOver } = rows[index]!;
        return [task.id, { task, crashes, isTakenOver }] as const;
      }),
    );
    return wishes.map(({ id }) => claimed.get(id));
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
         (t.status_state = 'submitted' and t.next_at <= now() and ${lastsSince} < now() - $1 * interval '1 millisecond')
         or (t.status_state = 'working' and t.next_at < now() + interval '1 hour' and ${lastsSince} < now() - $2 * interval '1 millisecond')) order by t.next_at limit $3`,
      [most.queued, most.working, limit],
    );
  }

  /** Makes a task that was put off due now. */
  async makeDueNow(id: TaskId): Promise<void> {
    await this.pg.rows(
      'task-hurry',
      `update a2a_tasks t set next_at = now() where t.id = $1 and ${textByKey('t.status_state')} in ('submitted', 'working') and ${timeByKey('t.next_at', '-infinity')} > now() and ${isFree('t', { self: '$2', trust: '$3' })}`,
      [id, this.presence.id, this.presence.trust],
    );
  }

  /** True when a task is due and nobody works on it. */
  async isWaiting(id: TaskId): Promise<boolean> {
    const rows = await this.pg.rows(
      'task-waiting',
      `select from a2a_tasks t where t.id = $1 and ${isDueByKey} and ${isFree('t', { self: '$2', trust: '$3' })}`,
      [id, this.presence.id, this.presence.trust],
    );
    return rows.length > 0;
  }

  /** What is due and held by nobody, for how long. */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'task-waits',
      `${openOrgs}
       select (select count(*) from (select from a2a_tasks t where ${isDue} and ${isFree('t', { self: '$1', trust: '$2' })} limit ${mostCounted}) due)::int as count,
         (select coalesce(extract(epoch from now() - min(oldest.next_at)), 0)::float8 from org cross join lateral (
            select t.next_at from a2a_tasks t where t.org_id = org.org_id and ${isDue} and ${isFree('t', { self: '$1', trust: '$2' })} order by t.next_at limit 1
          ) oldest) as "lagSeconds"`,
      [this.presence.id, this.presence.trust],
    );
    return row!;
  }

  /**
   * Due tasks that nobody works on, without those of orgs and senders that have to wait: the first of each org, then the second of each,
   * and so those of its senders within an org, the oldest first: a backlog of one holds up no other (abuse case 36).
   * @param forMs only what has been due for so long, or was held by somebody.
   */
  findDue(limit: number, waiting = nobody, forMs = 0): Promise<DueTask[]> {
    return this.pg.rows<DueTask>(
      'task-due',
      `${openOrgs}
       select due.id, due."isOrphan" from org cross join lateral (
         select turns.*, row_number() over (order by turns.turn, turns.next_at) as place from (
           select first.*, row_number() over (partition by first.owner order by first.next_at) as turn from (
             select t.id, t.owner, t.next_at, t.lease_until is not null as "isOrphan"
             from a2a_tasks t where t.org_id = org.org_id and ${isDue} and ${isFree('t', { self: '$3', trust: '$5' })}
               and (t.lease_until is not null or t.next_at <= now() - $4 * interval '1 millisecond') and ${senderOf} <> all($6::text[])
             order by t.next_at limit ${firstOfBacklog}) first) turns
         order by place limit greatest($1::int / (select count(*) from org), ${leastPerOrg})
       ) due where org.org_id <> all($2::uuid[]) order by due.place, due.next_at limit $1`,
      [limit, waiting.orgs, this.presence.id, forMs, this.presence.trust, waiting.senders],
    );
  }

  /** Tasks of one caller at one agent that are under way, those begun within `besideMs` of one another counted once. */
  async countNested(org: OrgId, agent: AgentId, owner: string, besideMs: number): Promise<number> {
    const [row] = await this.pg.rows<{ nested: number }>(
      'task-nested',
      `select count(distinct floor(extract(epoch from created_at) * 1000 / $4))::int as nested from a2a_tasks
       where org_id = $1 and agent_id = $2 and owner = $3
         and (status_state = 'working' or status_state = 'submitted' and lease_owner is not null)`,
      [org, agent, owner, besideMs],
    );
    return row!.nested;
  }

  /**
   * How many tasks of these orgs are open, and under `everybody` those of all; none is counted further than asked for. Beside them the
   * senders who have a backlog of their own, by `senderKey`.
   * @param backlogs of the orgs, those whose senders are counted.
   */
  async countOpen(
    orgs: readonly string[],
    backlogs: readonly string[],
    most: { perOrg: number; all: number },
  ): Promise<Map<string, number>> {
    const rows = await this.pg.rows<{ org: string; open: number }>(
      'task-open',
      `select o.org::text, (select count(*) from (select from a2a_tasks t where t.org_id = o.org and t.next_at is not null order by t.next_at limit $2) w)::int as open
       from unnest($1::uuid[]) as o(org)
       union all select '${everybody}', (select count(*) from (select from a2a_tasks t where t.next_at is not null order by t.org_id, t.next_at limit $3) w)::int
       union all select w.sender, count(*)::int from unnest($4::uuid[]) as o(org) cross join lateral (
         select ${senderOf} as sender from a2a_tasks t where t.org_id = o.org and t.next_at is not null order by t.next_at limit ${firstOfBacklog}
       ) w group by w.sender having count(*) >= ${backlogFrom}`,
      [orgs, most.perOrg, most.all, backlogs],
    );
    return new Map(rows.map(({ org, open }) => [org, open]));
  }
}
