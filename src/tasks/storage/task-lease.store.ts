import { Injectable } from '@nestjs/common';
import { callerOf, type Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { textByKey, timeByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import { ago, later } from '../../platform/database/sql.js';
import { backlogFrom, everybody } from './open-tasks.js';
import { briefColumns, TaskStore, type BriefRow } from './task.store.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';
import { type StoredTask } from '../task.types.js';

/** Milliseconds of a lease without renewal; the holder renews it every `renewMs`. */
export const leaseMs = 15_000;
export const renewMs = 3_000;

/** Time at which a task entered its state, by the clock of the database. */
export const lastsSince = 'coalesce(t.status_since, t.created_at)';
const isDue = `t.next_at <= now() and t.status_state in ('submitted', 'working')`;
const isFreeNow = isFree('t', { self: ':self', trust: ':trust' });
const isDueByKey = `${timeByKey('t.next_at')} <= now() and ${textByKey('t.status_state')} in ('submitted', 'working')`;

/** Orgs with open tasks, found with one index step for each. */
const openOrgs = `
  with recursive step as (
    (
      select t.org_id
      from a2a_tasks t
      where t.next_at is not null
      order by t.org_id
      limit 1
    )
    union all
    select (
      select t.org_id
      from a2a_tasks t
      where t.next_at is not null and t.org_id > step.org_id
      order by t.org_id
      limit 1
    )
    from step
    where step.org_id is not null
  ),
  org as (
    select org_id
    from step
    where org_id is not null
  )`;
/** How many tasks of an org a query reads to group them by sender. */
const firstOfBacklog = 1_000;
/** Fewest tasks that a sweep takes for each org, for any number of orgs. */
const leastPerOrg = 20;

/**
 * A claimed task, with the number of times its holder was lost so far. `isTakenOver` is true when this claim took it
 * from a lost holder.
 */
export interface Claimed {
  readonly task: StoredTask;
  readonly crashes: number;
  readonly isTakenOver?: boolean;
}

/** Orgs and senders that have reached their limits: their tasks are not claimed for now. */
export interface Waiters {
  readonly orgs: readonly string[];
  /** Each a `senderKey`. */
  readonly senders: readonly string[];
}
const noWaiters: Waiters = { orgs: [], senders: [] };

/** The key of a caller within all orgs; `senderOf` is the same in SQL. */
export function senderKey(org: OrgId, principal: Principal): string {
  return `${org} ${callerOf(principal)}`;
}
const senderOf = `t.org_id || ' ' || t.owner`;

interface ClaimRequest {
  readonly id: TaskId;
  readonly waiting: Waiters;
  readonly isOurs: boolean;
}

/** @see TaskLeases.findDue */
export interface DueTask {
  readonly id: TaskId;
  /** True when the process that worked on it is gone, or did not renew its lease in time. */
  readonly isOrphan: boolean;
}

/** Claims, renews and releases the leases of tasks, by the clock of the database. */
@Injectable()
export class TaskLeases {
  private readonly claims = new GroupCommit((requests: ClaimRequest[]) => this.claimAll(requests), {
    keysOf: ({ id }) => [id],
  });

  constructor(
    private readonly pg: Pg,
    private readonly presence: Presence,
    private readonly tasks: TaskStore,
  ) {}

  /**
   * Claims a due task that has no holder, with the next epoch. Returns undefined when there is no such task of this id,
   * or its org or sender has to wait.
   * @param isOurs this process is working on it: while the row also names this process, an expired lease is not treated
   * as lost.
   */
  claim(id: TaskId, waiting = noWaiters, isOurs = false): Promise<Claimed | undefined> {
    return this.claims.commit({ id, waiting, isOurs });
  }

  /**
   * Skips locked rows: another process is claiming or changing them. A lease of this process that expired is not
   * counted as a crash, because the process is alive.
   */
  private async claimAll(requests: readonly ClaimRequest[]): Promise<(Claimed | undefined)[]> {
    const { waiting } = requests.at(-1)!;
    const rows = await this.pg.rows<BriefRow & { crashes: number; isTakenOver: boolean }>(
      'task-claim',
      `
      update a2a_tasks t
      set lease_owner = :self,
        lease_until = ${later(leaseMs)},
        lease_epoch = t.lease_epoch + 1,
        crashes = t.crashes + (case when t.lease_until is null or t.lease_owner = :self then 0 else 1 end),
        updated_at = now()
      from (
        select b.id, b.lease_until, b.lease_owner
        from a2a_tasks b
        where b.id = any(:ids::uuid[])
        for update skip locked
      ) before
      where t.id = before.id
        and ${isDueByKey}
        and ${isFreeNow}
        and t.org_id <> all(:waitingOrgs::uuid[])
        and ${senderOf} <> all(:waitingSenders::text[])
        and (t.lease_owner is distinct from :self or t.id <> all(:ourIds::uuid[]))
      returning ${briefColumns()}, t.crashes,
        before.lease_until is not null and before.lease_owner is distinct from :self as "isTakenOver"`,
      {
        ids: requests.map(({ id }) => id),
        ourIds: requests.filter(({ isOurs }) => isOurs).map(({ id }) => id),
        waitingOrgs: waiting.orgs,
        waitingSenders: waiting.senders,
        self: this.presence.id,
        trust: this.presence.trust,
      },
    );
    const tasks = await this.tasks.ofBriefRows(rows);
    const claimed = new Map(
      rows.map(({ id, crashes, isTakenOver }, index) => {
        const task = tasks[index];
        return [id, task && { task, crashes, isTakenOver }] as const;
      }),
    );
    return requests.map(({ id }) => claimed.get(id));
  }

  /** Renews the leases of the given tasks; returns the ids that this process still holds. */
  async renew(ids: readonly string[]): Promise<Set<string>> {
    const rows = await this.pg.rows<{ id: string }>(
      'task-renew',
      `
      update a2a_tasks t
      set lease_until = ${later(leaseMs)}
      where t.id = any(:ids::uuid[]) and t.lease_owner = :self
      returning t.id`,
      { ids, self: this.presence.id },
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Releases a task that has not ended: it is due at once for any worker. */
  async release({ id, epoch }: Pick<StoredTask, 'id' | 'epoch'>): Promise<void> {
    await this.pg.rows(
      'task-release',
      `
      update a2a_tasks
      set lease_owner = null, lease_until = null, next_at = now()
      where id = :id and lease_epoch = :epoch and lease_owner = :self`,
      { id, epoch, self: this.presence.id },
    );
  }

  /**
   * Tasks that waited or ran for longer than the limits, in milliseconds. A task that an external worker may still
   * fetch (due far ahead) does not count as queued.
   */
  findOverdue(most: { queued: number; working: number }, limit: number): Promise<{ id: TaskId; state: string }[]> {
    return this.pg.rows<{ id: TaskId; state: string }>(
      'task-overdue',
      `
      select t.id, t.status_state as state
      from a2a_tasks t
      where t.next_at is not null
        and (
          (
            t.status_state = 'submitted'
            and t.next_at <= now()
            and ${lastsSince} < ${ago(':queued')}
          ) or (
            t.status_state = 'working'
            and t.next_at < now() + interval '1 hour'
            and ${lastsSince} < ${ago(':working')}
          )
        )
      order by t.next_at
      limit :limit`,
      { queued: most.queued, working: most.working, limit },
    );
  }

  /** Makes a deferred task due now. */
  async makeDueNow(id: TaskId): Promise<void> {
    await this.pg.rows(
      'task-hurry',
      `
      update a2a_tasks t
      set next_at = now()
      where t.id = :id
        and ${textByKey('t.status_state')} in ('submitted', 'working')
        and ${timeByKey('t.next_at', '-infinity')} > now()
        and ${isFreeNow}`,
      { id, self: this.presence.id, trust: this.presence.trust },
    );
  }

  /** True when a task is due and has no holder. */
  async isWaiting(id: TaskId): Promise<boolean> {
    const rows = await this.pg.rows(
      'task-waiting',
      `
      select
      from a2a_tasks t
      where t.id = :id and ${isDueByKey} and ${isFreeNow}`,
      { id, self: this.presence.id, trust: this.presence.trust },
    );
    return rows.length > 0;
  }

  /** Number of due tasks without a holder, and the age of the oldest. */
  async countWaiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'task-waits',
      `
      ${openOrgs}
      select (
          select count(*)
          from (
            select
            from a2a_tasks t
            where ${isDue} and ${isFreeNow}
            limit ${mostCounted}
          ) due
        )::int as count,
        (
          select coalesce(extract(epoch from now() - min(oldest.next_at)), 0)::float8
          from org
          cross join lateral (
            select t.next_at
            from a2a_tasks t
            where t.org_id = org.org_id and ${isDue} and ${isFreeNow}
            order by t.next_at
            limit 1
          ) oldest
        ) as "lagSeconds"`,
      { self: this.presence.id, trust: this.presence.trust },
    );
    return row!;
  }

  /**
   * Due tasks without a holder, except those of orgs and senders that have to wait. The order is fair: the first task
   * of each org, then the second of each, and in the same way for the senders within an org, oldest first. So a backlog
   * of one org or sender delays no other (abuse case 36).
   * @param forMs only tasks that have been due for this many milliseconds, or that had a holder.
   */
  findDue(limit: number, waiting = noWaiters, forMs = 0): Promise<DueTask[]> {
    return this.pg.rows<DueTask>(
      'task-due',
      `
      ${openOrgs}
      select due.id, due."isOrphan"
      from org
      cross join lateral (
        select turns.*, row_number() over (order by turns.turn, turns.next_at) as place
        from (
          select first.*, row_number() over (partition by first.owner order by first.next_at) as turn
          from (
            select t.id, t.owner, t.next_at, t.lease_until is not null as "isOrphan"
            from a2a_tasks t
            where t.org_id = org.org_id
              and ${isDue}
              and ${isFreeNow}
              and (t.lease_until is not null or t.next_at <= ${ago(':forMs')})
              and ${senderOf} <> all(:waitingSenders::text[])
            order by t.next_at
            limit ${firstOfBacklog}
          ) first
        ) turns
        order by place
        limit greatest(:limit::int / (select count(*) from org), ${leastPerOrg})
      ) due
      where org.org_id <> all(:waitingOrgs::uuid[])
      order by due.place, due.next_at
      limit :limit`,
      {
        limit,
        forMs,
        waitingOrgs: waiting.orgs,
        waitingSenders: waiting.senders,
        self: this.presence.id,
        trust: this.presence.trust,
      },
    );
  }

  /**
   * Number of running tasks of one caller at one agent; tasks created in the same window of `besideMs` milliseconds
   * count once.
   */
  async countNested(org: OrgId, agent: AgentId, owner: string, besideMs: number): Promise<number> {
    const [row] = await this.pg.rows<{ nested: number }>(
      'task-nested',
      `
      select count(distinct floor(extract(epoch from created_at) * 1000 / :besideMs))::int as nested
      from a2a_tasks
      where org_id = :org
        and agent_id = :agent
        and owner = :owner
        and (status_state = 'working' or status_state = 'submitted' and lease_owner is not null)`,
      { org, agent, owner, besideMs },
    );
    return row!.nested;
  }

  /**
   * Number of open tasks of these orgs, and of all orgs under the key `everybody`; each count stops at its limit. Also
   * the senders with a backlog, by `senderKey`.
   * @param backlogs the orgs to count by sender as well.
   * @param most where the counts stop.
   */
  async countOpen(
    orgs: readonly string[],
    backlogs: readonly string[],
    most: { perOrg: number; all: number },
  ): Promise<Map<string, number>> {
    const rows = await this.pg.rows<{ org: string; open: number }>(
      'task-open',
      `
      select o.org::text,
        (
          select count(*)
          from (
            select
            from a2a_tasks t
            where t.org_id = o.org and t.next_at is not null
            order by t.next_at
            limit :perOrg
          ) w
        )::int as open
      from unnest(:orgs::uuid[]) as o(org)
      union all
      select '${everybody}',
        (
          select count(*)
          from (
            select
            from a2a_tasks t
            where t.next_at is not null
            order by t.org_id, t.next_at
            limit :all
          ) w
        )::int
      union all
      select w.sender, count(*)::int
      from unnest(:backlogs::uuid[]) as o(org)
      cross join lateral (
        select ${senderOf} as sender
        from a2a_tasks t
        where t.org_id = o.org and t.next_at is not null
        order by t.next_at
        limit ${firstOfBacklog}
      ) w
      group by w.sender
      having count(*) >= ${backlogFrom}`,
      { orgs, backlogs, perOrg: most.perOrg, all: most.all },
    );
    return new Map(rows.map(({ org, open }) => [org, open]));
  }
}
