import { Injectable } from '@nestjs/common';
import { callerOf, type Lineage, type Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { TrustTier } from '../../kernel/trust.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { Pg } from '../../platform/database/pg.js';
import { foldArtifacts } from '../../protocol/a2a/artifacts.js';
import type { Artifact, Message, StreamResponse } from '../../protocol/a2a/model.js';
import { stateOf } from '../../protocol/a2a/states.js';
import { bodyFromStore, eventsOfRows, type EventsRow, type StoredBody } from './stored-event.js';
import { type NumberedEvent, type StoredTask } from '../task.types.js';

/** The large members of a task. A read that does not select one gets an empty value. */
export interface TaskSelection {
  readonly artifacts: boolean;
  readonly history: boolean;
  readonly statusMessage: boolean;
}

/** SQL of the columns of a task that make a StoredTask. Without artifacts, no artifact is read from the log either. */
export function taskColumns({ artifacts, history, statusMessage }: TaskSelection = everything): string {
  return `
    t.id, t.org_id, t.agent_id, t.agent_name, t.context_id, t.principal, t.depth, t.lineage,
    t.status_state, ${statusMessage ? 't.status_message' : 'null::json as status_message'}, t.status_timestamp,
    ${history ? 't.history' : `'[]'::json as history`}, ${artifacts ? 't.artifacts' : `'[]'::json as artifacts`},
    t.metadata, t.trust_tier, t.seq, ${artifacts ? 't.folded_seq' : 't.seq as folded_seq'}, t.memo, t.lease_epoch`;
}

const everything: TaskSelection = { artifacts: true, history: true, statusMessage: true };

export interface TaskRow {
  id: TaskId;
  org_id: OrgId;
  agent_id: AgentId;
  agent_name: string;
  context_id: string;
  principal: Principal;
  depth: number;
  lineage: Lineage | null;
  status_state: string;
  status_message: Message | null;
  status_timestamp: Date;
  history: Message[];
  artifacts: Artifact[];
  metadata: JsonObject | null;
  trust_tier: TrustTier;
  seq: number;
  folded_seq: number;
  memo: Json | null;
  lease_epoch: number;
}

interface TaskEventsRow extends EventsRow {
  readonly task_id: string;
}

/** Most rows in one read of a log; a reader asks again for more. */
const rowsPerRead = 500;
/**
 * Most bytes of caller content in one read, except that the first row is always read: a single task can have megabytes.
 */
const maxReadBytes = 4_194_304;

/**
 * SQL for the first rows of a relation in an order: at least one, and up to `maxReadBytes` of the given columns.
 * `total` is the number of all rows.
 */
export function firstOf(rows: string, order: string, columns: readonly string[]): string {
  const bytes = columns.map((column) => `coalesce(octet_length(${column}::text), 0)`).join(' + ');
  return `
    select *
    from (
      select f.*,
        sum(${bytes}) over (order by ${order} rows unbounded preceding) as weight,
        row_number() over (order by ${order}) as place,
        count(*) over ()::int as total
      from (${rows}) f
    ) w
    where weight <= ${maxReadBytes} or place = 1
    order by ${order}`;
}

/** Reads tasks and their logs. Reads that arrive while one is in progress are combined into the next. */
@Injectable()
export class TaskStore {
  private readonly reads: GroupCommit<string, StoredTask | undefined>;

  constructor(private readonly pg: Pg) {
    this.reads = new GroupCommit((ids) => this.findAll(ids));
  }

  /** A task by its id, of any owner; undefined when there is none. @param id a UUID. */
  find(id: string): Promise<StoredTask | undefined> {
    return this.reads.commit(id);
  }

  /** A task that was read before, as it is stored now; without its content, when it has no newer event and holder. */
  async findChanged(known: StoredTask): Promise<StoredTask | undefined> {
    const [row] = await this.pg.rows<Pick<TaskRow, 'seq' | 'lease_epoch' | 'memo'>>(
      'task-position',
      `
      select seq, lease_epoch, memo
      from a2a_tasks
      where id = :id`,
      { id: known.id },
    );
    if (row?.seq !== known.seq || row.lease_epoch !== known.epoch) return this.find(known.id);
    return { ...known, memo: row.memo ?? undefined };
  }

  /** Events of a task after a number, in order, of at most `rowsPerRead` rows and `maxReadBytes`. */
  async eventsAfter(id: string, after: number): Promise<NumberedEvent[]> {
    const rows = await this.pg.rows<EventsRow>(
      'task-events-after',
      firstOf(
        `
        select first_seq, seq, body
        from a2a_task_events
        where task_id = :id and seq > :after
        order by seq
        limit ${rowsPerRead}`,
        'seq',
        ['body'],
      ),
      { id, after },
    );
    return this.restore(id, eventsOfRows(rows, { after }));
  }

  /** Events of a task with numbers above `after`, up to and including `until`, in order. */
  async eventsBetween(id: string, after: number, until: number): Promise<StreamResponse[]> {
    const rows = await this.pg.rows<EventsRow>(
      'task-events-between',
      `
      select first_seq, seq, body
      from a2a_task_events
      where task_id = :id and seq > :after and seq <= ${lastRowOf(':id', ':until')}
      order by seq`,
      { id, after, until },
    );
    return (await this.restore(id, eventsOfRows(rows, { after, until }))).map(({ body }) => body);
  }

  /** Completes stored events of one log. Reads the task when one refers to it for its content. */
  private async restore(id: string, events: readonly { seq: number; body: StoredBody }[]): Promise<NumberedEvent[]> {
    const task = events.some(({ body }) => 'besideTask' in body) ? await this.find(id) : undefined;
    return events.flatMap(({ seq, body }) => {
      if (!('besideTask' in body)) return [{ seq, body }];
      return task ? [{ seq, body: bodyFromStore(task, body) }] : []; // the task was deleted meanwhile, with its log
    });
  }

  /** Those of these report ids that the task has applied. */
  async appliedReports(id: string, reportIds: readonly string[]): Promise<string[]> {
    if (reportIds.length === 0) return [];
    const rows = await this.pg.rows<{ reportId: string }>(
      'task-reports-applied',
      `
      select report_id as "reportId"
      from a2a_task_reports
      where task_id = :id and report_id = any(:reportIds::text[])`,
      { id, reportIds },
    );
    return rows.map(({ reportId }) => reportId);
  }

  /** The tasks of `seen` that have newer events, with the number of the last one. */
  async newer(seen: ReadonlyMap<string, number>): Promise<{ id: string; seq: number }[]> {
    return this.pg.rows<{ id: string; seq: number }>(
      'task-newer',
      `
      select t.id, t.seq
      from unnest(:ids::uuid[], :seqs::integer[]) as seen(id, seq)
      join a2a_tasks t on t.id = seen.id and t.seq > seen.seq`,
      { ids: [...seen.keys()], seqs: [...seen.values()] },
    );
  }

  /** The agent of an owner's newest task in a context. */
  async agentOfContext(org: string, owner: string, contextId: string): Promise<AgentId | undefined> {
    const [row] = await this.pg.rows<{ agentId: AgentId }>(
      'task-context-agent',
      `
      select agent_id as "agentId"
      from a2a_tasks
      where context_id = :contextId and org_id = :org and owner = :owner
      order by created_at desc, id desc
      limit 1`,
      { contextId, org, owner },
    );
    return row?.agentId;
  }

  /**
   * Messages of earlier tasks of a caller's context, oldest first: the newest `limit`, and at most `maxReadBytes`. The
   * database's `created_at` decides the order, because ids come from processes with different clocks.
   */
  async earlierMessages(task: StoredTask, limit: number): Promise<Message[]> {
    const rows = await this.pg.rows<Pick<TaskRow, 'history' | 'status_message'>>(
      'task-context-history',
      firstOf(
        `
        select created_at, id, history, status_message
        from a2a_tasks
        where context_id = :contextId
          and (created_at, id) < (coalesce((select created_at from a2a_tasks where id = :id), now()), :id)
          and org_id = :org
          and agent_id = :agent
          and owner = :owner
        order by created_at desc, id desc
        limit :limit`,
        'created_at desc, id desc',
        ['history', 'status_message'],
      ),
      {
        contextId: task.contextId,
        id: task.id,
        org: task.orgId,
        agent: task.agentId,
        owner: callerOf(task.principal),
        limit,
      },
    );
    const messages = rows
      .reverse()
      .flatMap(({ history, status_message: last }) => (last ? [...history, last] : history));
    return messages.slice(-limit);
  }

  private async findAll(ids: string[]): Promise<(StoredTask | undefined)[]> {
    const rows = await this.pg.rows<TaskRow>(
      'tasks-by-id',
      `
      select ${taskColumns()}
      from a2a_tasks t
      where t.id = any(:ids::uuid[])`,
      { ids },
    );
    const found = new Map((await this.fold(rows)).map((task) => [task.id as string, task]));
    return ids.map((id) => found.get(id.toLowerCase()));
  }

  /** Turns rows into tasks; adds the artifacts that are only in the log so far. */
  async fold(rows: readonly TaskRow[]): Promise<StoredTask[]> {
    const unfolded = rows.filter(({ folded_seq: folded, seq }) => folded < seq);
    if (unfolded.length === 0) return rows.map((row) => taskOf(row));
    const logs = await this.pg.rows<TaskEventsRow>(
      'task-events-unfolded',
      `
      select e.task_id, e.first_seq, e.seq, e.body
      from unnest(:ids::uuid[], :folded::integer[], :seqs::integer[]) as part(id, after, until)
      join a2a_task_events e on e.task_id = part.id and e.seq > part.after and e.seq <= part.until
      order by e.task_id, e.seq`,
      {
        ids: unfolded.map(({ id }) => id),
        folded: unfolded.map((row) => row.folded_seq),
        seqs: unfolded.map(({ seq }) => seq),
      },
    );
    const byTask = new Map<string, EventsRow[]>();
    for (const log of logs) byTask.set(log.task_id, [...(byTask.get(log.task_id) ?? []), log]);
    return rows.map((row) => taskOf(row, byTask.get(row.id)));
  }
}

/** SQL for the number of the row of a log that has an event: the last event of the same commit. */
function lastRowOf(id: string, event: string): string {
  return `coalesce((select min(seq) from a2a_task_events where task_id = ${id} and seq >= ${event}), ${event})`;
}

function taskOf(row: TaskRow, unfolded: readonly EventsRow[] = []): StoredTask {
  const task: StoredTask = {
    id: row.id,
    orgId: row.org_id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    contextId: row.context_id,
    principal: row.principal,
    depth: row.depth,
    ...(row.lineage && { lineage: row.lineage }),
    state: stateOf(row.status_state),
    ...(row.status_message && { statusMessage: row.status_message }),
    statusAt: row.status_timestamp.getTime(),
    history: row.history,
    artifacts: row.artifacts,
    foldedSeq: row.folded_seq,
    ...(row.metadata && { metadata: row.metadata }),
    trustTier: row.trust_tier,
    seq: row.seq,
    epoch: row.lease_epoch,
    ...(row.memo !== null && { memo: row.memo }),
  };
  if (unfolded.length === 0) return task;
  const events = eventsOfRows(unfolded).map(({ body }) => bodyFromStore(task, body));
  return { ...task, artifacts: foldArtifacts(task.artifacts, events) };
}
