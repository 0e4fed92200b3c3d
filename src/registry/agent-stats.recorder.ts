import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { newId } from '../kernel/ids.js';
import { storableText } from '../kernel/json.js';
import type { Act, ActEnd } from '../kernel/verb-bus.js';
import type { ActRecorder } from '../platform/bus/ledger.js';
import type { RowChange, RowStatement } from '../platform/database/row-writer.js';

/** How much longer than its time limit a call counts as running. */
export const graceMs = 60_000;
const defaultTimeoutMs = 3_600_000;

const startInstance: RowStatement = {
  name: 'instance-start',
  sql: (
    rows,
  ) => `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, status, caller, started_at, expires_at, input)
    select id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, 'active', caller, started_at, expires_at, input
    from jsonb_to_recordset(${rows}) as r(id uuid, org_id uuid, agent_id uuid, agent_name text, verb text, skill_id text, session_id text,
      work_type text, caller text, started_at timestamptz, expires_at timestamptz, input text)`,
};

// The condition on r: see instance-end.
const sendInstance: RowStatement = {
  name: 'instance-send',
  sql: (rows) => `update a2a_task_instances t set pending = false
    from jsonb_to_recordset(${rows}) as r(id uuid, is_sent boolean) where t.id = r.id and r.is_sent`,
};

// The condition on r says nothing new: without it the planner expects a hundred rows of any record set, and reads a table that it
// knows nothing of, or knows as small, as a whole instead of following the key. An end that comes after the call was given up
// (`call.retention`) tells the truth all the same.
const endInstance: RowStatement = {
  name: 'instance-end',
  sql: (
    rows,
  ) => `update a2a_task_instances t set status = r.status, ended_at = r.ended_at, duration_ms = r.duration_ms, error_code = r.error_code,
      task_id = r.task_id, output = r.output, cost = r.cost, pending = false
    from jsonb_to_recordset(${rows}) as r(id uuid, status text, ended_at timestamptz, duration_ms double precision, error_code text,
      task_id text, output text, cost double precision)
    where t.id = r.id and r.status in ('completed', 'failed')`,
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

/** Who called, as the rows of calls name them. */
export function callerOf({ principal }: CallContext): string {
  return `${principal.kind}:${storableText(principal.id, 256)}`;
}

/** Load, outcome and cost of every call to an agent (RE-40, RE-42, RE-72). What the caller did wrong is not the agent's failure. */
export const agentStatsRecorder: ActRecorder = {
  begin(act: Act): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent || act.isLook) return [];
    if (act.dispatch?.isPlaced) return [{ statement: sendInstance, row: { id: act.id, is_sent: true } }];
    const { ctx, agent, skillId, dispatch } = act;
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
          work_type: dispatch?.workType ?? `explicit:${storableText(skillId ?? '', 200)}`,
          caller: callerOf(ctx),
          started_at: new Date(act.startedAt).toISOString(),
          expires_at: new Date(act.startedAt + (act.timeoutMs ?? defaultTimeoutMs) + graceMs).toISOString(),
          input: dispatch?.input,
        },
      },
    ];
  },

  end(act: Act, end: ActEnd): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent || act.isLook) return [];
    if (end.outcome === 'denied') return act.dispatch?.isPlaced ? [instanceEnd(act, end)] : [];
    const completed = end.outcome === 'completed';
    const rows = [instanceEnd(act, end)];
    if (completed || end.error?.code !== 'canceled') {
      rows.push({
        statement: countOutcome,
        row: { agent_id: act.agent.id, success: completed ? 1 : 0, duration_ms: end.durationMs },
      });
    }
    if (completed && act.agent.costPerTask !== undefined) {
      rows.push({
        statement: chargeCost,
        row: {
          id: newId(),
          org_id: act.ctx.org.id,
          agent_id: act.agent.id,
          act_id: act.id,
          amount: act.agent.costPerTask,
        },
      });
    }
    return rows;
  },
};

function instanceEnd({ id, agent, answer }: Act, { outcome, durationMs, error }: ActEnd): RowChange {
  const completed = outcome === 'completed';
  const taskId = answer?.taskId ?? error?.data?.taskId;
  return {
    statement: endInstance,
    row: {
      id,
      status: completed ? 'completed' : 'failed',
      ended_at: new Date(systemClock.now()).toISOString(),
      duration_ms: durationMs,
      error_code: error?.code ?? null,
      task_id: typeof taskId === 'string' ? storableText(taskId, 256) : undefined,
      output: answer?.output,
      cost: completed ? agent?.costPerTask : undefined,
    },
  };
}
