import type { CallContext } from '../../kernel/call-context.js';
import { newId } from '../../kernel/ids.js';
import { storableText } from '../../kernel/json.js';
import type { Act, ActEnd } from '../../kernel/verb-bus.js';
import type { ActRecorder } from '../../platform/bus/ledger.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import { later } from '../../platform/database/sql.js';

/** Milliseconds that a call counts as running after its time limit. */
export const graceMs = 60_000;
const defaultTimeoutMs = 3_600_000;

// Times come from the clock of the database, which also decides what still runs: clocks of processes differ.
const expiry = later('r.expires_ms');

const startInstance: RowStatement = {
  name: 'instance-start',
  sql: (rows) => `
    insert into a2a_task_instances (
      id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, status, caller, expires_at, input
    )
    select id, org_id, agent_id, agent_name, verb, skill_id, session_id, work_type, 'active', caller, ${expiry}, input
    from jsonb_to_recordset(${rows}) as r(
      id uuid, org_id uuid, agent_id uuid, agent_name text, verb text, skill_id text, session_id text,
      work_type text, caller text, expires_ms double precision, input text
    )`,
};

// The condition on r is for the planner: see instance-end.
const sendInstance: RowStatement = {
  name: 'instance-send',
  sql: (rows) => `
    update a2a_task_instances t
    set pending = false
    from jsonb_to_recordset(${rows}) as r(id uuid, is_sent boolean)
    where t.id = r.id and r.is_sent`,
};

// The condition on r is always true and only helps the planner. Without it the planner expects 100 rows of any record
// set, and scans a table that is small or has no statistics, instead of using the key. An end that is reported after
// `call.retention` ended the call replaces its status, because it is the real outcome.
const endInstance: RowStatement = {
  name: 'instance-end',
  sql: (rows) => `
    update a2a_task_instances t
    set
      status = r.status, ended_at = now(), duration_ms = r.duration_ms, error_code = r.error_code,
      task_id = r.task_id, output = r.output, cost = r.cost, pending = false
    from jsonb_to_recordset(${rows}) as r(
      id uuid, status text, duration_ms double precision, error_code text, task_id text, output text,
      cost double precision
    )
    where t.id = r.id and r.status in ('completed', 'failed')`,
};

const extendInstance: RowStatement = {
  name: 'instance-extend',
  sql: (rows) => `
    update a2a_task_instances t
    set expires_at = greatest(t.expires_at, ${expiry}), task_id = coalesce(r.task_id, t.task_id)
    from jsonb_to_recordset(${rows}) as r(id uuid, expires_ms double precision, task_id text)
    where t.id = r.id and r.expires_ms is not null`,
};

// Sums the rows of one agent and sorts the agents, so that two batches lock the rows in the same order.
const countOutcome: RowStatement = {
  name: 'outcome',
  sql: (rows) => `
    insert into agent_outcomes as o (agent_id, successes, failures, total_ms)
    select agent_id, sum(success), sum(1 - success), sum(duration_ms)
    from jsonb_to_recordset(${rows}) as r(agent_id uuid, success int, duration_ms double precision)
    group by agent_id
    order by agent_id
    on conflict (agent_id) do update set
      successes = o.successes + excluded.successes,
      failures = o.failures + excluded.failures,
      total_ms = o.total_ms + excluded.total_ms,
      updated_at = now()`,
};

const chargeCost: RowStatement = {
  name: 'cost',
  sql: (rows) => `
    insert into cost_events (id, org_id, agent_id, act_id, amount)
    select id, org_id, agent_id, act_id, amount
    from jsonb_to_recordset(${rows}) as r(
      id uuid, org_id uuid, agent_id uuid, act_id uuid, amount double precision
    )`,
};

/** Returns the caller in the form that the rows of calls store. */
export function callerOf({ principal }: CallContext): string {
  return `${principal.kind}:${storableText(principal.id, 256)}`;
}

/**
 * Records load, outcome and cost of every call to a registered agent (RE-40, RE-42, RE-72). Errors of the caller do
 * not count as failures of the agent.
 */
export const agentStatsRecorder: ActRecorder = {
  begin(act: Act): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent) return [];
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
          expires_ms: (act.timeoutMs ?? defaultTimeoutMs) + graceMs,
          input: dispatch?.input,
        },
      },
    ];
  },

  end(act: Act, end: ActEnd): RowChange[] {
    if (act.action !== 'a2a_invoke' || !act.agent || end.handedOver) return [];
    const { agent, answer } = act;
    const { outcome, durationMs, error } = end;
    const taskId = answer?.taskId ?? error?.data?.taskId;
    const call = {
      actId: act.id,
      orgId: act.ctx.org.id,
      agentId: agent.id,
      costPerTask: agent.costPerTask,
      durationMs,
      error,
      output: answer?.output,
      ...(typeof taskId === 'string' && { taskId: storableText(taskId, 256) }),
    };
    if (outcome === 'denied') return act.dispatch?.isPlaced ? [instanceEnd({ ...call, outcome: 'failed' })] : [];
    return endRows({ ...call, outcome });
  },
};

/** A call that ended. */
export interface EndedCall {
  readonly actId: string;
  readonly orgId: string;
  readonly agentId: string;
  readonly costPerTask?: number;
  readonly outcome: 'completed' | 'failed';
  readonly durationMs: number;
  readonly error?: { readonly code: string };
  /** The output of a dispatch, as it is stored. */
  readonly output?: unknown;
  readonly taskId?: string;
}

export function endRows(call: EndedCall): RowChange[] {
  const { actId, orgId, agentId, costPerTask, outcome, durationMs, error } = call;
  const completed = outcome === 'completed';
  const rows = [instanceEnd(call)];
  // A call that the caller canceled, or was not allowed to make, says nothing about the agent.
  if (completed || (error?.code !== 'canceled' && error?.code !== 'denied' && error?.code !== 'approval_required'))
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

function instanceEnd({ actId, outcome, durationMs, error, costPerTask, output, taskId }: EndedCall): RowChange {
  return {
    statement: endInstance,
    row: {
      id: actId,
      status: outcome,
      duration_ms: durationMs,
      error_code: error?.code ?? null,
      task_id: taskId,
      output,
      cost: outcome === 'completed' ? costPerTask : undefined,
    },
  };
}

/**
 * Returns the row change for a call that was handed over: it stays active until its work ends, at most `forMs`
 * milliseconds and a grace period.
 */
export function keepActive(actId: string, forMs: number): RowChange {
  return { statement: extendInstance, row: { id: actId, expires_ms: forMs + graceMs } };
}
