import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { positional, type SqlParams } from '../../platform/database/sql.js';
import { taskStatesOf, type ConversationState } from '../../protocol/a2a/conversation/conversation.js';
import { wordOf, type TaskState } from '../../protocol/a2a/states.js';
import { firstListed, taskColumns, TaskStore, type TaskRow, type TaskSelection } from './task.store.js';
import type { StoredTask } from '../task.types.js';

/** The tasks that a caller may list, narrowed to those it asks for. */
export interface TaskFilter {
  readonly org: string;
  /** Absent: every agent of the org. */
  readonly agent?: string;
  /** `kind:id`; absent: every owner of the org. */
  readonly owner?: string;
  readonly contextId?: string;
  readonly state?: TaskState;
  /** Milliseconds since the epoch, inclusive. */
  readonly since?: number;
  /** Only the newest task of each owner in each context. */
  readonly isNewestOfContext?: true;
  /** State of the conversation; needs `isNewestOfContext`. */
  readonly conversation?: ConversationState;
}

/** Position of the last task of a page: the status time in microseconds, as the database stores it, and the id. */
export type ListPosition = readonly [at: string, id: string];

export interface TaskListPage {
  readonly tasks: readonly { readonly task: StoredTask; readonly at: string }[];
  readonly more: boolean;
}

/** Counts are exact up to this number; counting further would cost more than the page. */
const maxCounted = 10_000;

/** Pages of tasks, newest status first, by keyset instead of offset, so that new tasks cause no gaps or duplicates. */
@Injectable()
export class TaskListStore {
  constructor(
    private readonly pg: Pg,
    private readonly tasks: TaskStore,
  ) {}

  /**
   * Reads at most `limit` tasks, fewer when they are too large together; `more` says whether others follow. Members
   * that are not selected are not read, and are empty.
   */
  async readPage(
    filter: TaskFilter,
    limit: number,
    { after, ...selection }: TaskSelection & { after?: ListPosition },
  ): Promise<TaskListPage> {
    const where = conditions(filter);
    if (after) {
      const [at, id] = after;
      where.add('after', '(t.status_timestamp, t.id) < (:at::text::timestamptz, :id::uuid)', { at, id });
    }
    const newest = (filtered: string): string => `
      select t.*
      from a2a_tasks t
      where ${filtered}
      order by t.status_timestamp desc, t.id desc
      limit :limit`;
    const found =
      filter.agent === undefined ? ofEachAgent(newest(`${where.text} and t.agent_id = a.id`)) : newest(where.text);
    const page = `
      select ${taskColumns(selection)},
        to_char(t.status_timestamp at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
      from (${found}) t
      order by t.status_timestamp desc, t.id desc
      limit :limit`;
    const parts = [selection.statusMessage, selection.history, selection.artifacts].map(Number).join('');
    const rows = await this.pg.rows<TaskRow & { at: string; total: number }>(
      `task-list:${where.name}:${parts}`,
      firstListed(page, 'status_timestamp desc, id desc'),
      { ...where.params, limit: limit + 1 },
    );
    const tasks = await this.tasks.fold(rows);
    return {
      tasks: tasks.slice(0, limit).map((task, index) => ({ task, at: rows[index]!.at })),
      more: rows.length > 0 && rows[0]!.total > Math.min(rows.length, limit),
    };
  }

  /** Number of matching tasks: exact up to `maxCounted`, above that an estimate of the planner. */
  async countTasks(filter: TaskFilter): Promise<number> {
    const where = conditions(filter);
    const [row] = await this.pg.rows<{ count: number }>(
      `task-count:${where.name}`,
      `
      select count(*)::int as count
      from (
        select
        from a2a_tasks t
        where ${where.text}
        limit ${maxCounted + 1}
      ) as counted`,
      where.params,
    );
    const { count } = row!;
    return count > maxCounted ? Math.max(count, await this.estimate(where)) : count;
  }

  private async estimate({ text, params }: Conditions): Promise<number> {
    const { rows } = await this.pg.pool.query<{ 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }>(
      positional(`explain (format json) select from a2a_tasks t where ${text}`, params),
    );
    return rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows'];
  }
}

/**
 * Runs a query for each agent that has tasks. Every index of tasks begins with the agent, and an org has few agents;
 * one index step finds each of them.
 */
function ofEachAgent(select: string): string {
  const next = (more = ''): string => `
    select t.agent_id
    from a2a_tasks t
    where t.org_id = :org ${more}
    order by t.agent_id
    limit 1`;
  return `
    with recursive a(id) as (
      (${next()})
      union all
      select (${next('and t.agent_id > a.id')})
      from a
      where a.id is not null
    )
    select t.*
    from a
    cross join lateral (${select}) t`;
}

/** Conditions joined by `and`. Each has its own label, so that the name of a prepared statement identifies its text. */
class Conditions {
  readonly params: Record<string, unknown> = {};
  private readonly parts: string[] = [];
  private readonly labels: string[] = [];

  add(label: string, sql: string, params: SqlParams = {}): void {
    this.labels.push(label);
    this.parts.push(sql);
    Object.assign(this.params, params);
  }

  get name(): string {
    return this.labels.join('.');
  }

  get text(): string {
    return this.parts.join(' and ');
  }
}

const newestOfContext = `
  t.id = (
    select n.id
    from a2a_tasks n
    where n.context_id = t.context_id and n.org_id = t.org_id and n.owner = t.owner
    order by n.created_at desc, n.id desc
    limit 1
  )`;
const isPaused = `coalesce(t.status_message #>> '{metadata,paused}', '') = 'true'`;

/** SQL for the tasks of conversations in a state; the states are literals, as in `conditions`. */
function inConversationState(state: ConversationState): string {
  const words = taskStatesOf(state).map((each) => `'${wordOf(each)}'`);
  const inState = `t.status_state in (${words.join(', ')})`;
  if (state === 'paused') return `${inState} and ${isPaused}`;
  return state === 'open' ? `${inState} and not ${isPaused}` : inState;
}

function conditions(filter: TaskFilter): Conditions {
  const { org, agent, owner, contextId, state, since, isNewestOfContext, conversation } = filter;
  const where = new Conditions();
  where.add('org', 't.org_id = :org', { org });
  if (agent !== undefined) where.add('agent', 't.agent_id = :agent', { agent });
  if (owner !== undefined) where.add('owner', 't.owner = :owner', { owner });
  if (contextId !== undefined) where.add('context', 't.context_id = :contextId', { contextId });
  // A literal instead of a parameter, so that the planner can use the partial index.
  if (state !== undefined) where.add(wordOf(state), `t.status_state = '${wordOf(state)}'`);
  if (since !== undefined) {
    const earliest = new Date(since).toISOString();
    where.add('since', 't.status_timestamp >= :earliest::text::timestamptz', { earliest });
  }
  if (isNewestOfContext) where.add('newest', newestOfContext);
  if (conversation !== undefined) where.add(`conversation-${conversation}`, inConversationState(conversation));
  return where;
}
