import { Injectable } from '@nestjs/common';
import { textByKey } from '../../platform/database/by-key.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { Pg } from '../../platform/database/pg.js';
import { preparedName, rowExpressions, type RowChange } from '../../platform/database/row-writer.js';
import { later } from '../../platform/database/sql.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import type { Message } from '../../protocol/a2a/model.js';
import { terminalStates, wordOf } from '../../protocol/a2a/states.js';
import { longLog } from './long-tasks.js';
import { rowToStore } from './stored-event.js';
import { claimKeys, mayUseKey } from './idempotency-keys.js';
import type { EventSink } from '../event-sink.port.js';
import { EventSinks } from '../event-sinks.js';
import { type NumberedEvent, type StoredTask } from '../task.types.js';
import { callerOf } from '../../kernel/call-context.js';

/** The lease of a task after a change, and when a worker has to run it. Times are of the database's clock. */
export interface Hold {
  /** The process that works on it; absent: no process of this gateway. */
  readonly leaseOwner?: number;
  readonly leaseMs?: number;
  /** Milliseconds from now until the task is due; absent: the task needs no worker. */
  readonly dueInMs?: number;
  /** A due time of the row that is at most this much later is kept, so that a change touches no index. */
  readonly slackMs?: number;
}

/** An idempotency key, and the hash of the payload it was used with. */
export interface IdempotencyKey {
  readonly key: string;
  readonly payloadHash: string;
}

/** One change of one task, committed completely or not at all. */
export interface TaskChange {
  /** The task after the change. */
  readonly task: StoredTask;
  /** The task as it was read; absent for a new one. The change is lost when the row has changed since. */
  readonly from?: StoredTask;
  readonly events: readonly NumberedEvent[];
  readonly hold: Hold;
  /**
   * Rows of the act's record. Those of a new task are committed even when the change is lost, because its message gets
   * the result of the earlier one with its key. Those of a task that continues are committed with the change or not.
   */
  readonly record?: readonly RowChange[];
  /** Rows of other modules that are committed with the change or not at all; each has a `task_id`. */
  readonly rows?: readonly RowChange[];
  readonly key?: IdempotencyKey;
}

/**
 * The row holds the content up to this event after a change. It has a copy when the log is long: when the task ends,
 * and, while no process of the gateway holds it, whenever the log has doubled. So a change costs the same however many
 * were before it, and a reader reads at most half of a long log. The events of a first commit are one row of the log,
 * which needs no copy.
 */
export function foldedSeqAfter({ task, from, hold }: Pick<TaskChange, 'task' | 'from' | 'hold'>): number {
  const { state, seq, foldedSeq } = task;
  if (terminalStates.has(state)) return from && seq - foldedSeq >= longLog ? seq : foldedSeq;
  return hold.leaseOwner === undefined && seq - foldedSeq >= Math.max(longLog, foldedSeq) ? seq : foldedSeq;
}

/** Unique index that permits one terminal event for each task. */
const onlyEnd = 'uq_a2a_task_events_end';

/**
 * Batch size from which a second batch may run at the same time. Tasks share no rows, so the second never waits for the
 * first.
 */
const laneOpensAt = 20;

/**
 * The only write path of tasks: group commit of compare-and-set, events, sinks and records (decisions: fast path). One
 * statement commits all waiting changes; each caller gets its own result.
 */
@Injectable()
export class TaskWriter {
  private readonly group: GroupCommit<TaskChange, boolean>;

  constructor(
    private readonly pg: Pg,
    private readonly sinks: EventSinks,
    private readonly metrics: Metrics,
  ) {
    this.group = new GroupCommit((batch) => this.writeBatch(batch), {
      keysOf: ({ task, key }) =>
        key ? [task.id, `${task.orgId} ${task.agentId} ${callerOf(task.principal)} ${key.key}`] : [task.id],
      laneOpensAt,
      mayRepeat: false,
    });
  }

  /** Returns true when the change is committed; false when the row had changed, or the key of a new task is in use. */
  commitInBatch(change: TaskChange): Promise<boolean> {
    return this.group.commit(change);
  }

  private async writeBatch(batch: TaskChange[]): Promise<boolean[]> {
    const { name, text, values } = composeTaskStatement(batch, this.sinks.all);
    const rows = await this.pg.rows<{ id: string }>(name, text, values).catch((error: unknown) => {
      if ((error as { constraint?: string }).constraint === onlyEnd)
        this.metrics.invariantViolations.inc({ inv: 'I2' });
      throw error;
    });
    const done = new Set(rows.map(({ id }) => id));
    const fenced = batch.filter(({ task, from }) => from && !done.has(task.id)).length;
    if (fenced > 0) this.metrics.fencedWrites.inc({ kind: 'tasks' }, fenced);
    return batch.map(({ task }) => done.has(task.id));
  }
}

/** One statement for all changes. Its shape, and so its prepared name, depends only on the kinds of change. */
function composeTaskStatement(batch: readonly TaskChange[], sinks: readonly EventSink[]) {
  const parts = new Statement();
  const fresh = batch.filter(({ from }) => !from);
  const moved = batch.filter(({ from }) => from).sort((a, b) => (a.task.id < b.task.id ? -1 : 1));
  // Sorted, so that two processes do not deadlock on the same keys.
  const keyed = batch.filter(({ key }) => key).sort((a, b) => (a.key!.key < b.key!.key ? -1 : 1));
  if (keyed.length > 0) parts.add('k', claimKeys, keyed.map(keyRow));
  if (fresh.length > 0) parts.add('i', keyed.length > 0 ? insertKeyed : insertTasks, fresh.map(insertRow));
  if (moved.length > 0) parts.add('u', keyed.length > 0 ? updateKeyed : updateTasks, moved.map(updateRow));
  const sources = [fresh.length > 0 && 'i', moved.length > 0 && 'u'].filter((name) => name !== false);
  const ok = sources.map((name) => `select id, org_id from ${name}`).join(' union all ');
  parts.with('ok', ok);
  const events = batch.flatMap(eventRows);
  if (events.length > 0) {
    parts.add('e', insertEvents, events);
    // Sinks see changed tasks only: a row that refers to a new task, even one that this statement inserts, is not
    // visible to it yet.
    const appended = `(
      select e.task_id, u.org_id, generate_series(e.first_seq, e.seq) as seq
      from e
      join u on u.id = e.task_id)`;
    if (moved.length > 0) for (const sink of sinks) parts.with(`sink_${sink.name}`, sink.sql(appended), sink.name);
  }
  parts.addRows(
    'record',
    fresh.flatMap(({ record = [] }) => record),
  );
  parts.addRows(
    'resumed',
    moved.flatMap(({ task, record = [] }) =>
      record.map(({ statement, row }) => ({ statement, row: { task_id: task.id, row } })),
    ),
    (rows) => ofChanged(rows, `x->'row'`),
  );
  parts.addRows(
    'rows',
    batch.flatMap(({ rows }) => rows ?? []),
    (rows) => ofChanged(rows),
  );
  return parts.compose('select id from ok');
}

class Statement {
  private readonly names: string[] = [];
  private readonly expressions: string[] = [];
  private readonly values: string[] = [];

  add(name: string, sql: (rows: string) => string, rows: readonly object[]): void {
    this.values.push(JSON.stringify(rows));
    this.with(name, sql(`$${this.values.length}::json`), sql.name);
  }

  with(name: string, sql: string, label = name): void {
    this.names.push(label);
    this.expressions.push(`${name} as (${sql})`);
  }

  addRows(label: string, rows: readonly RowChange[], select?: (rows: string) => string): void {
    if (rows.length === 0) return;
    const more = rowExpressions(rows, this.values.length + 1, { label, select });
    this.names.push(...more.names.map((name) => `${label}.${name}`));
    this.expressions.push(...more.expressions);
    this.values.push(...more.values);
  }

  compose(select: string): { name: string; text: string; values: string[] } {
    const text = `with ${this.expressions.join(',\n')}\n${select}`;
    return { name: preparedName(`task:${this.names.join('+')}`), text, values: this.values };
  }
}

/** The rows of a jsonb array that belong to a changed task, or a member of each. */
function ofChanged(rows: string, row = 'x'): string {
  return `(
    select coalesce(jsonb_agg(${row}), '[]')
    from jsonb_array_elements(${rows}) x
    where (x->>'task_id')::uuid in (select id from ok)
  )`;
}

/** Columns that an insert gives to a task; `lease_until` and `next_at` are calculated from `lease_ms` and `due_ms`. */
const insertList = `
  id, org_id, agent_id, agent_name, context_id, owner, principal, depth, lineage,
  status_state, status_message, status_timestamp, history, artifacts, metadata,
  trust_tier, seq, folded_seq, memo, lease_owner, lease_epoch`;

const insertShape = `
  id uuid, org_id uuid, agent_id uuid, agent_name text, context_id text, owner text, principal json, depth integer,
  lineage json, status_state text, status_message json, status_timestamp timestamptz, history json, artifacts json,
  metadata json, trust_tier smallint, seq integer, folded_seq integer, memo json, lease_owner integer,
  lease_epoch integer, lease_ms integer, due_ms integer, keyed boolean`;

const updateShape = `
  id uuid, status_state text, status_message json, status_timestamp timestamptz, history json, artifacts json,
  trust_tier smallint, folded_seq integer, seq integer, memo json, lease_owner integer, lease_epoch integer,
  lease_ms integer, due_ms integer, slack_ms integer, from_seq integer, from_epoch integer, keyed boolean,
  restated boolean, continues boolean`;

function insertTasks(rows: string): string {
  return insertTasksWhere(rows, '');
}

function insertKeyed(rows: string): string {
  return insertTasksWhere(rows, `where ${mayUseKey}`);
}

function insertTasksWhere(rows: string, condition: string): string {
  return `
    insert into a2a_tasks (${insertList}, lease_until, next_at)
    select ${insertList}, ${later('lease_ms')}, ${later('due_ms')}
    from json_to_recordset(${rows}) as r(${insertShape})
    ${condition}
    returning id, org_id`;
}

function updateTasks(rows: string): string {
  return updateTasksWhere(rows, '');
}

function updateKeyed(rows: string): string {
  return updateTasksWhere(rows, `and (${mayUseKey})`);
}

// The condition `r.from_seq > 0` is always true. It keeps the planner from expecting a hundred rows and then scanning a
// small table.
function updateTasksWhere(rows: string, condition: string): string {
  return `
    update a2a_tasks t
    set status_state = r.status_state,
      status_message = r.status_message,
      status_timestamp = r.status_timestamp,
      status_since = case when r.restated then now() else t.status_since end,
      history = coalesce(r.history, t.history),
      artifacts = coalesce(r.artifacts, t.artifacts),
      trust_tier = coalesce(r.trust_tier, t.trust_tier),
      folded_seq = coalesce(r.folded_seq, t.folded_seq),
      seq = r.seq,
      memo = coalesce(r.memo, t.memo),
      lineage = case when r.continues then t.lineage end,
      lease_owner = r.lease_owner,
      lease_epoch = r.lease_epoch,
      lease_until = ${later('r.lease_ms')},
      next_at = case
        when t.next_at between ${later('r.due_ms')} and ${later('(r.due_ms + r.slack_ms)')} then t.next_at
        else ${later('(r.due_ms + coalesce(r.slack_ms, 0))')}
      end,
      updated_at = now()
    from json_to_recordset(${rows}) as r(${updateShape})
    where t.id = r.id
      and r.from_seq > 0
      and t.seq = r.from_seq
      and t.lease_epoch = r.from_epoch
      and ${textByKey('t.status_state')} in ('submitted', 'working', 'input-required', 'auth-required')
      ${condition}
    returning t.id, t.org_id`;
}

function insertEvents(rows: string): string {
  return `
    insert into a2a_task_events (task_id, first_seq, seq, body, terminal, at)
    select r.task_id, r.first_seq, r.seq, r.body, r.terminal, now()
    from json_to_recordset(${rows}) as r(task_id uuid, first_seq integer, seq integer, body json, terminal boolean)
    where r.task_id in (select id from ok)
    returning task_id, coalesce(first_seq, seq) as first_seq, seq`;
}

function keyRow({ task, key }: TaskChange): object {
  const { orgId, agentId, principal, id } = task;
  return {
    org_id: orgId,
    agent_id: agentId,
    owner: callerOf(principal),
    key: key!.key,
    payload_hash: key!.payloadHash,
    task_id: id,
  };
}

function insertRow(change: TaskChange): object {
  const { task, key } = change;
  return {
    org_id: task.orgId,
    agent_id: task.agentId,
    agent_name: task.agentName,
    context_id: task.contextId,
    owner: callerOf(task.principal),
    principal: task.principal,
    depth: task.depth,
    lineage: continues(task) ? task.lineage : undefined,
    ...stateColumns(change),
    folded_seq: 0,
    history: [],
    artifacts: [],
    ...foldedColumns(change),
    metadata: task.metadata,
    trust_tier: task.trustTier,
    keyed: key !== undefined,
  };
}

function updateRow(change: TaskChange): object {
  const { task, from, events, key } = change;
  return {
    from_seq: from!.seq,
    from_epoch: from!.epoch,
    // Decided by the events, because the timestamp may not change: with a slow clock, a process repeats the earlier
    // timestamp.
    restated: events.some(({ body }) => 'statusUpdate' in body),
    keyed: key !== undefined,
    continues: continues(task),
    ...stateColumns(change),
    ...(task.trustTier !== from!.trustTier && { trust_tier: task.trustTier }),
    ...foldedColumns(change),
  };
}

/** True when there may be a later run. A task that ended needs no lineage. */
function continues({ state }: StoredTask): boolean {
  return !terminalStates.has(state);
}

function foldedColumns(change: TaskChange): object {
  const { history, artifacts, foldedSeq } = change.task;
  const folded = foldedSeqAfter(change);
  return folded === foldedSeq ? {} : { folded_seq: folded, history, artifacts };
}

/**
 * The status message for the row. The log alone has that of a task that ended; but with metadata it is in the row too,
 * because statements read its members there (`freesItsKey`).
 */
function statusMessageColumn(change: TaskChange): Message | undefined {
  const { state, statusMessage: message, seq } = change.task;
  const isInLog = terminalStates.has(state) && foldedSeqAfter(change) < seq;
  return isInLog && !message?.metadata ? undefined : message;
}

function stateColumns(change: TaskChange): object {
  const { task, hold } = change;
  return {
    id: task.id,
    status_state: wordOf(task.state),
    status_message: statusMessageColumn(change),
    status_timestamp: new Date(task.statusAt).toISOString(),
    seq: task.seq,
    memo: task.memo,
    lease_owner: hold.leaseOwner,
    lease_epoch: task.epoch,
    lease_ms: hold.leaseMs,
    due_ms: hold.dueInMs,
    slack_ms: hold.slackMs,
  };
}

function eventRows({ task, events }: TaskChange): object[] {
  if (events.length === 0) return [];
  return [{ task_id: task.id, ...rowToStore(task, events), terminal: terminalStates.has(task.state) }];
}
