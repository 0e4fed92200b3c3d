import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { later, type SqlParams } from '../../platform/database/sql.js';
import { queryIn, TxRunner } from '../../platform/database/tx.js';
import type { DispatchQuery, DispatchStatus } from '../dispatch.types.js';

/** First key of the advisory locks on the places of one agent. */
const placeLock = 7_262_915;
const dropBatch = 5_000;

/** Load of an agent and the outcomes of its calls. */
export interface AgentRecord {
  readonly active: number;
  readonly successes: number;
  readonly failures: number;
}

/** A place with an agent, taken for a call that follows. */
export interface Place {
  readonly id: string;
  readonly org: OrgId;
  readonly agentId: string;
  readonly agentName: string;
  readonly verb: string;
  readonly skillId: string;
  readonly sessionId: string;
  readonly workType: string;
  readonly caller: string;
  readonly input: string;
  /** Milliseconds that the call counts as running when no process reports its end. */
  readonly lastsMs: number;
}

export interface DispatchFilter extends Pick<DispatchQuery, 'status' | 'kind' | 'from' | 'to'> {
  readonly agentId?: string;
  /** Undefined: the calls of all callers of the org. */
  readonly caller?: string;
}

export interface DispatchRow {
  readonly id: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly skillId: string | null;
  readonly taskId: string | null;
  readonly workType: string;
  readonly state: DispatchStatus;
  readonly caller: string;
  readonly input: string | null;
  readonly output: string | null;
  readonly errorCode: string | null;
  readonly durationMs: number | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly cost: number | null;
  /** `startedAt` with the full precision of the database. */
  readonly at: string;
}

/** Conditions without parameters, so that the planner can choose the partial index. */
const states: Record<DispatchStatus, string> = {
  pending: `t.status = 'active' and t.pending`,
  running: `t.status = 'active' and not t.pending`,
  completed: `t.status = 'completed'`,
  failed: `t.status = 'failed'`,
};
const kinds = {
  explicit: `t.work_type like 'explicit:%'`,
  transparent: `t.work_type not like 'explicit:%'`,
};
const columns = `
        t.id, t.agent_id as "agentId", t.agent_name as "agentName", t.skill_id as "skillId", t.task_id as "taskId",
        t.work_type as "workType", t.caller, t.input, t.output, t.error_code as "errorCode",
        t.duration_ms as "durationMs", t.started_at as "startedAt", t.ended_at as "endedAt", t.cost,
        case when t.status <> 'active' then t.status when t.pending then 'pending' else 'running' end as state,
        to_char(t.started_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const runs = `t.status = 'active' and t.expires_at > now()`;

/** Counts and lists the calls to registered agents and takes places for new ones. */
@Injectable()
export class DispatchStore {
  constructor(
    private readonly pg: Pg,
    private readonly txs: TxRunner,
  ) {}

  /**
   * Returns the record of every agent of an org that was ever called, over all processes, at this moment.
   */
  async records(org: OrgId): Promise<Map<string, AgentRecord>> {
    const rows = await this.pg.rows<AgentRecord & { id: string }>(
      'agent-records',
      `
      select id, sum(active)::int as active, sum(successes)::float8 as successes, sum(failures)::float8 as failures
      from (
        select t.agent_id as id, 1 as active, 0 as successes, 0 as failures
        from a2a_task_instances t
        where t.org_id = :org and ${runs}
        union all
        select c.id, 0, o.successes, o.failures
        from agent_cards c join agent_outcomes o on o.agent_id = c.id
        where c.org_id = :org
      ) called
      group by id`,
      { org },
    );
    return new Map(rows.map((row) => [row.id, row]));
  }

  /**
   * Takes a place with an agent for a call that follows. Returns false when `most` calls already run there. Requests
   * for a place of the same agent wait for each other, in all processes, so no two of them take the last place.
   */
  takePlace(place: Place, most: number): Promise<boolean> {
    return this.txs.run(async (tx) => {
      const lock = { key: placeLock, agentId: place.agentId };
      await queryIn(tx, 'select pg_advisory_xact_lock(:key, hashtext(:agentId))', lock);
      const taken = await queryIn<unknown[]>(
        tx,
        `
        insert into a2a_task_instances (
          id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, caller, input, status, pending,
          expires_at
        )
        select
          :id, :org::uuid, :agentId::uuid, :agentName, :verb, :skillId, :sessionId, :workType, :caller, :input,
          'active', true, ${later(':lastsMs::float8')}
        where (
          select count(*)
          from a2a_task_instances t
          where t.org_id = :org::uuid and t.agent_id = :agentId::uuid and ${runs}
        ) < :most::int
        returning id`,
        { ...place, most },
      );
      return taken.length > 0;
    });
  }

  /**
   * Returns one page, newest first, with one extra row when there are more.
   * @param after `at` and `id` of a row.
   */
  findPage(org: OrgId, filter: DispatchFilter, limit: number, after?: readonly string[]): Promise<DispatchRow[]> {
    const { agentId, caller, status, kind, from, to } = filter;
    const [afterAt, afterId] = after ?? [];
    const conditions = [
      ['agent', 't.agent_id = :agentId', { agentId }],
      ['caller', 't.caller = :caller', { caller }],
      [status, status && states[status], {}],
      [kind, kind && kinds[kind], {}],
      ['from', 't.started_at >= :from', { from }],
      ['to', 't.started_at < :to', { to }],
      ['after', '(t.started_at, t.id) < (:afterAt::timestamptz, :afterId::uuid)', { afterAt, afterId }],
    ] as const;
    const used = conditions.filter(([name, , params]) => name && !Object.values(params).includes(undefined));
    return this.pg.rows<DispatchRow>(
      `dispatch-page:${used.map(([name]) => name).join('.')}`,
      `
      select ${columns}
      from a2a_task_instances t
      where ${['t.org_id = :org', ...used.map(([, condition]) => condition)].join(' and ')}
      order by t.started_at desc, t.id desc
      limit :limit`,
      Object.assign({ org, limit: limit + 1 }, ...used.map(([, , params]) => params)) as SqlParams,
    );
  }

  /** Ends the calls that no process ended in time. */
  async endAbandoned(): Promise<void> {
    await this.pg.rows(
      'calls-abandoned',
      `
      update a2a_task_instances
      set status = 'failed', error_code = 'abandoned', ended_at = now()
      where status = 'active' and expires_at < now()`,
    );
  }

  /** Deletes a batch of the calls that began more than `days` ago and have ended. */
  async dropOld(days: number): Promise<void> {
    await this.pg.rows(
      'calls-retention',
      `
      delete from a2a_task_instances
      where id in (
        select old.id
        from orgs o
        cross join lateral (
          select id
          from a2a_task_instances t
          where t.org_id = o.id and status <> 'active' and started_at < now() - make_interval(days => :days::int)
          order by started_at
          limit ${dropBatch}
        ) old
        limit ${dropBatch}
      )`,
      { days },
    );
  }
}
