import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { TxRunner } from '../../platform/database/tx.js';
import type { DispatchQuery, DispatchStatus } from '../dispatch.types.js';

/** First key of the advisory locks on the places of one agent. */
const placeLock = 7_262_915;

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
  readonly agent_id: string;
  readonly agent_name: string;
  readonly skill_id: string | null;
  readonly task_id: string | null;
  readonly work_type: string;
  readonly state: DispatchStatus;
  readonly caller: string;
  readonly input: string | null;
  readonly output: string | null;
  readonly error_code: string | null;
  readonly duration_ms: number | null;
  readonly started_at: Date;
  readonly ended_at: Date | null;
  readonly cost: number | null;
  /** `started_at` with the full precision of the database. */
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
const columns = `t.id, t.agent_id, t.agent_name, t.skill_id, t.task_id, t.work_type, t.caller, t.input, t.output, t.error_code, t.duration_ms,
  t.started_at, t.ended_at, t.cost, case when t.status <> 'active' then t.status when t.pending then 'pending' else 'running' end as state,
  to_char(t.started_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const runs = `t.status = 'active' and t.expires_at > now()`;

/** Counts and lists the calls to registered agents and takes places for new ones. */
@Injectable()
export class DispatchStore {
  constructor(
    private readonly pg: Pg,
    private readonly txs: TxRunner,
  ) {}

  /** Returns the record of every agent of an org, over all processes, at this moment. */
  async records(org: OrgId): Promise<Map<string, AgentRecord>> {
    const rows = await this.pg.rows<AgentRecord & { id: string }>(
      'agent-records',
      `select c.id, coalesce(o.successes, 0)::float8 as successes, coalesce(o.failures, 0)::float8 as failures,
         (select count(*)::int from a2a_task_instances t where t.org_id = $1 and t.agent_id = c.id and ${runs}) as active
       from agent_cards c left join agent_outcomes o on o.agent_id = c.id where c.org_id = $1`,
      [org],
    );
    return new Map(rows.map((row) => [row.id, row]));
  }

  /**
   * Takes a place with an agent for a call that follows. Returns false when `most` calls already run there. Requests
   * for a place of the same agent wait for each other, in all processes, so no two of them take the last place.
   */
  take(place: Place, most: number): Promise<boolean> {
    const { id, org, agentId, agentName, verb, skillId, sessionId, workType, caller, input, lastsMs } = place;
    return this.txs.run(async ({ manager }) => {
      await manager.query('select pg_advisory_xact_lock($1, hashtext($2))', [placeLock, agentId]);
      const taken = await manager.query<unknown[]>(
        `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, caller, input, status, pending, expires_at)
         select $1, $2::uuid, $3::uuid, $4, $5, $6, $7, $8, $9, $10, 'active', true, now() + make_interval(secs => $11::float8 / 1000)
         where (select count(*) from a2a_task_instances t where t.org_id = $2::uuid and t.agent_id = $3::uuid and ${runs}) < $12::int returning id`,
        [id, org, agentId, agentName, verb, skillId, sessionId, workType, caller, input, lastsMs, most],
      );
      return taken.length > 0;
    });
  }

  /**
   * Returns one page, newest first, with one extra row when there are more.
   * @param after `at` and `id` of a row.
   */
  page(org: OrgId, filter: DispatchFilter, limit: number, after?: readonly string[]): Promise<DispatchRow[]> {
    const { agentId, caller, status, kind, from, to } = filter;
    const values: unknown[] = [org];
    const parts = ['t.org_id = $1'];
    const names: string[] = [];
    const add = (name: string, sql: string, ...given: unknown[]): void => {
      let index = values.length;
      names.push(name);
      parts.push(sql.replaceAll('%s', () => `$${++index}`));
      values.push(...given);
    };
    if (agentId !== undefined) add('agent', 't.agent_id = %s', agentId);
    if (caller !== undefined) add('caller', 't.caller = %s', caller);
    if (status !== undefined) add(status, states[status]);
    if (kind !== undefined) add(kind, kinds[kind]);
    if (from !== undefined) add('from', 't.started_at >= %s', from);
    if (to !== undefined) add('to', 't.started_at < %s', to);
    if (after !== undefined) add('after', '(t.started_at, t.id) < (%s::timestamptz, %s::uuid)', ...after);
    return this.pg.rows<DispatchRow>(
      `dispatch-page:${names.join('.')}`,
      `select ${columns} from a2a_task_instances t where ${parts.join(' and ')}
       order by t.started_at desc, t.id desc limit $${values.length + 1}`,
      [...values, limit + 1],
    );
  }
}
