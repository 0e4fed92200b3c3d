import { Injectable } from '@nestjs/common';
import { callerOf, type Lineage, type Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import type { TrustTier } from '../../kernel/trust.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { Pg } from '../../platform/database/pg.js';
import type { Artifact, Message, StreamResponse } from '../../protocol/a2a/model.js';
import { stateOf } from '../../protocol/a2a/states.js';
import { LongTasks, longLog } from './long-tasks.js';
import { completedEvent, contentAfter, eventsOfRows, type EventsRow } from './stored-event.js';
import { type NumberedEvent, type StoredTask } from '../task.types.js';

/** The large members of a task. One that is not selected may be empty or incomplete. */
export interface TaskSelection {
  readonly artifacts: boolean;
  readonly history: boolean;
  readonly statusMessage: boolean;
}

/** SQL of the rows of a log, as JSON, when the row of the task lacks them. */
function logWhere(isLacking: string, rows: string): string {
  return `case when ${isLacking} then (
      select json_agg(json_build_object('first_seq', e.first_seq, 'seq', e.seq, 'body', e.body) order by e.seq)
      from a2a_task_events e
      where e.task_id = t.id and ${rows}
    ) end`;
}

const unfoldedLog = logWhere('t.folded_seq < t.seq', 'e.seq > t.folded_seq');
/** The end of a task, which has its status message when the row has none (`statusMessageColumn`). */
const endOfLog = logWhere('t.folded_seq < t.seq and t.status_message is null', 'e.terminal');

/**
 * SQL of the columns of a task that make a StoredTask, with the part of its log that its row does not hold.
 * @param content wraps the SQL of the columns that its log has too.
 */
export function taskColumns(
  { artifacts, history, statusMessage }: TaskSelection = everything,
  content = (column: string): string => column,
): string {
  const isWhole = !artifacts && !history;
  const log = isWhole ? (statusMessage ? endOfLog : 'null::json') : unfoldedLog;
  return `
    t.id, t.org_id, t.agent_id, t.agent_name, t.context_id, t.principal, t.depth, t.lineage,
    t.status_state, ${statusMessage ? 't.status_message' : 'null::json as status_message'}, t.status_timestamp,
    ${content(history ? 't.history' : `'[]'::json`)} as history,
    ${content(artifacts ? 't.artifacts' : `'[]'::json`)} as artifacts,
    ${content(log)} as log, ${isWhole ? 't.seq as folded_seq' : 't.folded_seq'},
    t.metadata, t.trust_tier, t.seq, t.memo, t.lease_epoch`;
}

const everything: TaskSelection = { artifacts: true, history: true, statusMessage: true };

/** The columns of a task, without its content if the log is long, because it may be remembered (`ofBriefRows`). */
export function briefColumns(): string {
  return taskColumns(everything, (column) => `case when t.seq < ${longLog} then ${column} end`);
}

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
  /** Rows of the log after `folded_seq`. */
  log: EventsRow[] | null;
}

/** The columns of `taskColumns` with a size that callers decide. */
const contentColumns = ['history', 'artifacts', 'status_message', 'log'];

/** A row of `briefColumns`. Without `history` it has no content. */
export type BriefRow = TaskRow | (Omit<TaskRow, 'history'> & { history: null });

/** The members of a task that change without an event, and the number of its last event. */
type Position = Pick<TaskRow, 'id' | 'seq' | 'lease_epoch' | 'memo'>;

interface TaskEventsRow extends EventsRow {
  readonly task_id: string;
}

interface EventsOfContext extends EventsRow {
  readonly context_id: string;
}

/** Most rows in one read of a log; a reader asks again for more. */
const rowsPerRead = 500;
/**
 * Most bytes of caller content in one read, except that the first row is always read: a single task can have megabytes.
 */
const maxReadBytes = 4_194_304;
/** The same for an answer with many tasks: writing it in one piece must not hold up other callers. */
const maxListBytes = 2_097_152;

/**
 * SQL for the first tasks of a relation in an order, for an answer with all of them: at least one, and up to
 * `maxListBytes`. `total` is the number of all rows.
 */
export function firstListed(rows: string, order: string): string {
  // A log holds a text once that the history, an artifact and the status message of the answer may all have.
  return firstOf(rows, order, [...contentColumns, 'log', 'log'], maxListBytes);
}

/** SQL for the first rows of a relation in an order: at least one, and up to `most` bytes of the given columns. */
function firstOf(rows: string, order: string, columns: readonly string[], most = maxReadBytes): string {
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
    where weight <= ${most} or place = 1
    order by ${order}`;
}

/** Reads tasks and their logs. Reads that arrive while one is in progress are combined into the next. */
@Injectable()
export class TaskStore {
  private readonly reads: GroupCommit<string, StoredTask | undefined>;
  private readonly longTasks = new LongTasks();

  constructor(private readonly pg: Pg) {
    this.reads = new GroupCommit((ids) => this.findAll(ids));
  }

  /** A task by its id, of any owner; undefined when there is none. @param id a UUID. */
  find(id: string): Promise<StoredTask | undefined> {
    return this.reads.commit(id);
  }

  /** Remembers the content of a task after a committed change, if its log is long. */
  keep(task: StoredTask, change: Parameters<LongTasks['keep']>[1]): void {
    this.longTasks.keep(task, change);
  }

  /** Events of a task after a number, in order, of at most `rowsPerRead` rows and `maxReadBytes`. */
  async eventsAfter(id: string, after: number): Promise<NumberedEvent[]> {
    const rows = await this.pg.rows<EventsOfContext>(
      'task-events-after',
      firstOf(
        `
        select e.first_seq, e.seq, e.body, t.context_id
        from a2a_task_events e
        join a2a_tasks t on t.id = e.task_id
        where e.task_id = :id and e.seq > :after
        order by e.seq
        limit ${rowsPerRead}`,
        'seq',
        ['body'],
      ),
      { id, after },
    );
    return this.completed(id, rows, { after });
  }

  /** Events of a task with numbers above `after`, up to and including `until`, in order. */
  async eventsBetween(id: string, after: number, until: number): Promise<StreamResponse[]> {
    const rows = await this.pg.rows<EventsOfContext>(
      'task-events-between',
      `
      select e.first_seq, e.seq, e.body, t.context_id
      from a2a_task_events e
      join a2a_tasks t on t.id = e.task_id
      where e.task_id = :id and e.seq > :after and e.seq <= ${lastRowOf(':id', ':until')}
      order by e.seq`,
      { id, after, until },
    );
    return (await this.completed(id, rows, { after, until })).map(({ body }) => body);
  }

  /** The events of rows of one log, for readers. Reads the task when one refers to it for its content. */
  private async completed(
    id: string,
    rows: readonly EventsOfContext[],
    range: { after: number; until?: number },
  ): Promise<NumberedEvent[]> {
    if (rows.length === 0) return [];
    const events = eventsOfRows({ id: id as TaskId, contextId: rows[0]!.context_id }, rows, range);
    const task = events.some((event) => 'besideTask' in event) ? await this.find(id) : undefined;
    return events.flatMap((event) => {
      const done = completedEvent(task, event);
      return done ? [{ seq: done.seq, body: done.body }] : [];
    });
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
    const rows = await this.pg.rows<TaskRow>(
      'task-context-history',
      firstOf(
        `
        select t.created_at, ${taskColumns({ artifacts: false, history: true, statusMessage: true })}
        from a2a_tasks t
        where t.context_id = :contextId
          and (t.created_at, t.id) < (coalesce((select created_at from a2a_tasks where id = :id), now()), :id)
          and t.org_id = :org
          and t.agent_id = :agent
          and t.owner = :owner
        order by t.created_at desc, t.id desc
        limit :limit`,
        'created_at desc, id desc',
        contentColumns,
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
    const tasks = await this.fold(rows.reverse());
    const messages = tasks.flatMap(({ history, statusMessage: last }) => (last ? [...history, last] : history));
    return messages.slice(-limit);
  }

  private async findAll(given: string[]): Promise<(StoredTask | undefined)[]> {
    const ids = given.map((id) => id.toLowerCase());
    const found = await this.findUnchanged(ids);
    const others = ids.filter((id) => !found.has(id));
    if (others.length > 0) {
      const rows = await this.readRows(others);
      for (const task of await this.fold(rows)) {
        this.longTasks.keep(task);
        found.set(task.id, task);
      }
    }
    return ids.map((id) => found.get(id));
  }

  /** PostgreSQL plans a statement with an array anew each time, which takes longer than to read one task. */
  private readRows(ids: readonly string[]): Promise<TaskRow[]> {
    const select = `select ${taskColumns()} from a2a_tasks t`;
    return ids.length === 1
      ? this.pg.rows<TaskRow>('tasks-by-id:one', `${select} where t.id = :id`, { id: ids[0] })
      : this.pg.rows<TaskRow>('tasks-by-id', `${select} where t.id = any(:ids::uuid[])`, { ids });
  }

  /** Those of the remembered tasks that have no newer event, with the members that change without one. */
  private async findUnchanged(ids: readonly string[]): Promise<Map<string, StoredTask>> {
    const known = ids.filter((id) => this.longTasks.find(id));
    if (known.length === 0) return new Map();
    const rows = await this.pg.rows<Position>(
      'task-positions',
      `
      select id, seq, lease_epoch, memo
      from a2a_tasks
      where id = any(:ids::uuid[])`,
      { ids: known },
    );
    return new Map(
      rows.flatMap((row) => {
        const task = this.remembered(row);
        return task ? [[row.id, task]] : [];
      }),
    );
  }

  /** A task with remembered content that is current at the position of a row. */
  private remembered({ id, seq, lease_epoch: epoch, memo }: Position): StoredTask | undefined {
    const task = this.longTasks.find(id);
    return task?.seq === seq ? { ...task, epoch, memo: memo ?? undefined } : undefined;
  }

  /** The tasks of rows of `briefColumns`, in their order. Undefined for one that was changed after its row was read. */
  async ofBriefRows(rows: readonly BriefRow[]): Promise<(StoredTask | undefined)[]> {
    const short = rows.filter((row): row is TaskRow => row.history !== null);
    const tasks = new Map((await this.fold(short)).map((task) => [task.id, task]));
    return Promise.all(
      rows.map(async (row) => {
        const { id, seq, lease_epoch: epoch } = row;
        const task = tasks.get(id) ?? this.remembered(row) ?? (await this.find(id));
        return task?.seq === seq && task.epoch === epoch ? task : undefined;
      }),
    );
  }

  /**
   * Turns rows into tasks. A row that another process changed while it was being locked may be newer than its log; the
   * log is then read again.
   */
  async fold(rows: readonly TaskRow[]): Promise<StoredTask[]> {
    const unfolded = rows.filter(({ folded_seq: folded, seq, log }) => Math.max(folded, log?.at(-1)?.seq ?? 0) < seq);
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

function taskOf(row: TaskRow, log: readonly EventsRow[] = row.log ?? []): StoredTask {
  const { id, context_id: contextId, history, artifacts, status_message: said } = row;
  const inRow = { history, artifacts, statusMessage: said ?? undefined };
  const { statusMessage, ...content } = contentAfter(inRow, eventsOfRows({ id, contextId }, log));
  return {
    id,
    orgId: row.org_id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    contextId,
    principal: row.principal,
    depth: row.depth,
    ...(row.lineage && { lineage: row.lineage }),
    state: stateOf(row.status_state),
    ...(statusMessage && { statusMessage }),
    statusAt: row.status_timestamp.getTime(),
    ...content,
    foldedSeq: row.folded_seq,
    ...(row.metadata && { metadata: row.metadata }),
    trustTier: row.trust_tier,
    seq: row.seq,
    epoch: row.lease_epoch,
    ...(row.memo !== null && { memo: row.memo }),
  };
}
