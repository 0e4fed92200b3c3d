import { systemClock } from '../kernel/clock.js';
import { newId } from '../kernel/ids.js';
import { storableText } from '../kernel/json.js';
import type { Act, ActEnd } from '../kernel/verb-bus.js';
import type { ActRecorder } from '../platform/bus/ledger.js';
import type { RowChange, RowStatement } from '../platform/database/row-writer.js';

const graceMs = 60_000;
const defaultTimeoutMs = 3_600_000;

const startInstance: RowStatement = {
  name: 'instance-start',
  sql: (
    rows,
  ) => `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, status, caller, started_at, expires_at)
    select id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, 'active', caller, started_at, expires_at
    from jsonb_to_recordset(${rows}) as r(id uuid, org_id uuid, agent_id uuid, agent_name text, verb text, skill_id text, session_id text,
      work_type text, caller text, started_at timestamptz, expires_at timestamptz)`,
};

// The condition on r says nothing new: without it the planner expects a hundred rows of any record set, and reads a table that it
// knows nothing of, or knows as small, as a whole instead of following the key. An end that comes after the call was given up
// (`call.retention`) tells the truth all the same.
const endInstance: RowStatement = {
  name: 'instance-end',
  sql: (
    rows,
  ) => `update a2a_task_instances t set status = r.status, ended_at = r.ended_at, duration_ms = r.duration_ms, error_code = r.error_code
    from jsonb_to_recordset(${rows}) as r(id uuid, status text, ended_at timestamptz, duration_ms double precision, error_code text)
    where t.id = r.id and r.status in ('completed', 'failed')`,
};

const extendInstance: RowStatement = {
  name: 'instance-extend',
  sql: (rows) => `update a2a_task_instances t set expires_at = greatest(t.expires_at, r.expires_at)
    from jsonb_to_recordset(${rows}) as r(id uuid, expires_at timestamptz) where t.id = r.id and r.expires_at is not null`,
};

// Rows of one agent are summed and agents sorted, so that two batches lock them in the same order.
const countOutcome: RowStatement = {
  name: 'outcome',
  sql: (rows) => `insert into agent_outcomes as o (agent_id, successes, failures, total_ms)
    select agent_id, sum(success), sum(1 - success), sum(duration_ms) from jsonb_to_recordset(${rows}) as r(agent_id uuid, success int, duration_ms double precision)
    group by agent_id order by agent_id
    on conflict (agent_id) do update set successes = o.successes + excluded.successes, failures = o.failures + excluded.failures,
      total_ms = o.total_ms + excluded.total_ms, updated_at = now()`,
};

const chargeCost: RowStatement = {
  name: 'cost',
  sql: (rows) => `insert into cost_events (id, org_id, agent_id, act_id, amount)
    select id, org_id, agent_id, act_id, amount from jsonb_to_recordset(${rows}) as r(id uuid, org_id uuid, agent_id uuid, act_id uuid, amount double precision)`,
};

/** Load, outcome and cost of every call to an agent (RE-40, RE-42, RE-72). What the caller did wrong is not the agent's failure. */
export const agentStatsRecorder: ActRecorder = {
  begin(act: Act): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent) return [];
    const { ctx, agent, skillId } = act;
    return [
      {
        statement: startInstance,
        row: {
          id: act.id,
          org_id: ctx.org.id,
          agent_id: agent.id,
          agent_name: agent.slug,
          verb: storableText(act.verb, 256),
          skill_id: skillId === undefined ? null : storableText(skillId, 256),
          session_id: act.sessionId,
          work_type: `explicit:${storableText(skillId ?? '', 200)}`,
          caller: `${ctx.principal.kind}:${storableText(ctx.principal.id, 256)}`,
          started_at: new Date(act.startedAt).toISOString(),
          expires_at: new Date(act.startedAt + (act.timeoutMs ?? defaultTimeoutMs) + graceMs).toISOString(),
        },
      },
    ];
  },

  end(act: Act, end: ActEnd): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent || end.outcome === 'denied' || end.handedOver) return [];
    const { id: agentId, costPerTask } = act.agent;
    const { outcome, durationMs, error } = end;
    return endRows({ actId: act.id, orgId: act.ctx.org.id, agentId, costPerTask, outcome, durationMs, error });
  },
};

/** A call that is over, as it is counted. */
export interface EndedCall {
  readonly actId: string;
  readonly orgId: string;
  readonly agentId: string;
  readonly costPerTask?: number;
  readonly outcome: 'completed' | 'failed';
  readonly durationMs: number;
  readonly error?: { readonly code: string };
}

export function endRows({ actId, orgId, agentId, costPerTask, outcome, durationMs, error }: EndedCall): RowChange[] {
  const completed = outcome === 'completed';
  const rows: RowChange[] = [
    {
      statement: endInstance,
      row: {
        id: actId,
        status: outcome,
        ended_at: new Date(systemClock.now()).toISOString(),
        duration_ms: durationMs,
        error_code: error?.code ?? null,
      },
    },
  ];
  if (completed || error?.code !== 'canceled')
    rows.push({
      statement: countOutcome,
      row: { agent_id: agentId, success: completed ? 1 : 0, duration_ms: durationMs },
    });
  if (completed && costPerTask !== undefined)
    rows.push({
      statement: chargeCost,
      row: { id: newId(), org_id: orgId, agent_id: agentId, act_id: actId, amount: costPerTask },
    });
  return rows;
}

/** The row of a call that was handed over: it counts as active until its work is over, or may no longer be. */
export function keepActive(actId: string, forMs: number): RowChange {
  const expiresAt = new Date(systemClock.now() + forMs + graceMs).toISOString();
  return { statement: extendInstance, row: { id: actId, expires_at: expiresAt } };
}
