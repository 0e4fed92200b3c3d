import { Injectable } from '@nestjs/common';
import { callerOf, type Lineage, type Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { Pg } from '../../platform/database/pg.js';
import { foldArtifacts } from '../../protocol/a2a/artifacts.js';
import type { Artifact, Message, StreamResponse } from '../../protocol/a2a/model.js';
import { stateOf } from '../../protocol/a2a/states.js';
import { bodyFromStore, type StoredBody } from './stored-event.js';
import { type NumberedEvent, type StoredTask } from '../task.types.js';

/** The columns of a task that make a StoredTask. */
export const taskColumns = `t.id, t.org_id, t.agent_id, t.agent_name, t.context_id, t.principal, t.depth, t.lineage, t.status_state, t.status_message,
  t.status_timestamp, t.history, t.artifacts, t.metadata, t.seq, t.folded_seq, t.memo, t.lease_epoch`;

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
  seq: number;
  folded_seq: number;
  memo: Json | null;
  lease_epoch: number;
}

interface EventRow {
  task_id: string;
  seq: number;
  body: StoredBody;
}

/** Most events in one read of a log; a reader asks again for more. */
const eventsPerRead = 500;
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
  return `select * from (select f.*, sum(${bytes}) over (order by ${order} rows unbounded preceding) as weight, row_number() over (order by ${order}) as place, count(*) over ()::int as total
    from (${rows}) f) w where weight <= ${maxReadBytes} or place = 1 order by ${order}`;
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

  /** Events of a task after a number, in order, at most `eventsPerRead` and `maxReadBytes`. */
  async eventsAfter(id: string, after: number): Promise<NumberedEvent[]> {
    const rows = await this.pg.rows<EventRow>(
      'task-events-after',
      firstOf(
        `select seq, body from a2a_task_events where task_id = $1 and seq > $2 order by seq limit ${eventsPerRead}`,
        'seq',
        ['body'],
      ),
      [id, after],
    );
    return this.restore(id, rows);
  }

  /** Events of a task with numbers above `after`, up to and including `until`, in order. */
  async eventsBetween(id: string, after: number, until: number): Promise<StreamResponse[]> {
    const rows = await this.pg.rows<EventRow>(
      'task-events-between',
      'select seq, body from a2a_task_events where task_id = $1 and seq > $2 and seq <= $3 order by seq',
      [id, after, until],
    );
    return (await this.restore(id, rows)).map(({ body }) => body);
  }

  /** Turns rows of one log into events. Reads the task when a row refers to it for its content. */
  private async restore(id: string, rows: readonly Pick<EventRow, 'seq' | 'body'>[]): Promise<NumberedEvent[]> {
    const task = rows.some(({ body }) => 'besideTask' in body) ? await this.find(id) : undefined;
    return rows.flatMap(({ seq, body }) => {
      if (!('besideTask' in body)) return [{ seq, body }];
      return task ? [{ seq, body: bodyFromStore(task, body) }] : []; // the task was deleted meanwhile, with its log
    });
  }

  /** The tasks of `seen` that have newer events, with the number of the last one. */
  async newer(seen: ReadonlyMap<string, number>): Promise<{ id: string; seq: number }[]> {
    return this.pg.rows<{ id: string; seq: number }>(
      'task-newer',
      `select t.id, t.seq from unnest($1::uuid[], $2::integer[]) as seen(id, seq) join a2a_tasks t on t.id = seen.id and t.seq > seen.seq`,
      [[...seen.keys()], [...seen.values()]],
    );
  }

  /** The agent of an owner's newest task in a context. */
  async agentOfContext(org: string, owner: string, contextId: string): Promise<AgentId | undefined> {
    const [row] = await this.pg.rows<{ agent_id: AgentId }>(
      'task-context-agent',
      'select agent_id from a2a_tasks where context_id = $1 and org_id = $2 and owner = $3 order by created_at desc, id desc limit 1',
      [contextId, org, owner],
    );
    return row?.agent_id;
  }

  /**
   * Messages of earlier tasks of a caller's context, oldest first: the newest `limit`, and at most `maxReadBytes`. The
   * database's `created_at` decides the order, because ids come from processes with different clocks.
   */
  async earlierMessages(task: StoredTask, limit: number): Promise<Message[]> {
    const rows = await this.pg.rows<Pick<TaskRow, 'history' | 'status_message'>>(
      'task-context-history',
      firstOf(
        `select created_at, id, history, status_message from a2a_tasks
         where context_id = $1 and (created_at, id) < (coalesce((select created_at from a2a_tasks where id = $2), now()), $2)
           and org_id = $3 and agent_id = $4 and owner = $5 order by created_at desc, id desc limit $6`,
        'created_at desc, id desc',
        ['history', 'status_message'],
      ),
      [task.contextId, task.id, task.orgId, task.agentId, callerOf(task.principal), limit],
    );
    const messages = rows
      .reverse()
      .flatMap(({ history, status_message: last }) => (last ? [...history, last] : history));
    return messages.slice(-limit);
  }

  private async findAll(ids: string[]): Promise<(StoredTask | undefined)[]> {
    const rows = await this.pg.rows<TaskRow>(
      'tasks-by-id',
      `select ${taskColumns} from a2a_tasks t where t.id = any($1::uuid[])`,
      [ids],
    );
    const found = new Map((await this.fold(rows)).map((task) => [task.id as string, task]));
    return ids.map((id) => found.get(id.toLowerCase()));
  }

  /** Turns rows into tasks; adds the artifacts that are only in the log so far. */
  async fold(rows: readonly TaskRow[]): Promise<StoredTask[]> {
    const unfolded = rows.filter(({ folded_seq: folded, seq }) => folded < seq);
    if (unfolded.length === 0) return rows.map((row) => taskOf(row));
    const events = await this.pg.rows<EventRow>(
      'task-events-unfolded',
      `select e.task_id, e.seq, e.body from unnest($1::uuid[], $2::integer[], $3::integer[]) as part(id, after, until)
       join a2a_task_events e on e.task_id = part.id and e.seq > part.after and e.seq <= part.until order by e.task_id, e.seq`,
      [unfolded.map(({ id }) => id), unfolded.map((row) => row.folded_seq), unfolded.map(({ seq }) => seq)],
    );
    const byTask = new Map<string, EventRow[]>();
    for (const event of events) byTask.set(event.task_id, [...(byTask.get(event.task_id) ?? []), event]);
    return rows.map((row) => taskOf(row, byTask.get(row.id)));
  }
}

function taskOf(row: TaskRow, unfolded: readonly EventRow[] = []): StoredTask {
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
    isFolded: row.folded_seq === row.seq,
    ...(row.metadata && { metadata: row.metadata }),
    seq: row.seq,
    epoch: row.lease_epoch,
    ...(row.memo !== null && { memo: row.memo }),
  };
  if (unfolded.length === 0) return task;
  const events = unfolded.map(({ body }) => bodyFromStore(task, body));
  return { ...task, artifacts: foldArtifacts(task.artifacts, events) };
}
