import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { wordOf, type TaskState } from '../../protocol/a2a/states.js';
import { firstOf, taskColumns, TaskStore, type TaskRow } from './task.store.js';
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
}

/** Position of the last task of a page: the status time in microseconds, as the database stores it, and the id. */
export type ListPosition = readonly [at: string, id: string];

/** The start of a page and the columns to read. */
interface PageSelection {
  readonly after?: ListPosition;
  readonly artifacts: boolean;
  readonly history: boolean;
  readonly statusMessage: boolean;
}

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
  async page(filter: TaskFilter, limit: number, { after, ...selection }: PageSelection): Promise<TaskListPage> {
    const where = conditions(filter);
    if (after) where.add('after', '(t.status_timestamp, t.id) < (%::text::timestamptz, %::uuid)', ...after);
    const newest = (filtered: string): string =>
      `select t.* from a2a_tasks t where ${filtered} order by t.status_timestamp desc, t.id desc limit $${where.values.length + 1}`;
    const columns = taskColumns
      .replace('t.status_message', selection.statusMessage ? '$&' : 'null::json as status_message')
      .replace('t.history', selection.history ? '$&' : `'[]'::json as history`)
      .replace('t.artifacts', selection.artifacts ? '$&' : `'[]'::json as artifacts`)
      .replace('t.folded_seq', selection.artifacts ? '$&' : 't.seq as folded_seq');
    const page = `select ${columns}, to_char(t.status_timestamp at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
      from (${filter.agent === undefined ? ofEachAgent(newest(`${where.text} and t.agent_id = a.id`)) : newest(where.text)}) t
      order by t.status_timestamp desc, t.id desc limit $${where.values.length + 1}`;
    const rows = await this.pg.rows<TaskRow & { at: string; total: number }>(
      `task-list:${where.name}:${[selection.statusMessage, selection.history, selection.artifacts].map(Number).join('')}`,
      firstOf(page, 'status_timestamp desc, id desc', ['history', 'artifacts', 'status_message']),
      [...where.values, limit + 1],
    );
    const tasks = await this.tasks.fold(rows);
    return {
      tasks: tasks.slice(0, limit).map((task, index) => ({ task, at: rows[index]!.at })),
      more: rows.length > 0 && rows[0]!.total > Math.min(rows.length, limit),
    };
  }

  /** Number of matching tasks: exact up to `maxCounted`, above that an estimate of the planner. */
  async count(filter: TaskFilter): Promise<number> {
    const where = conditions(filter);
    const [row] = await this.pg.rows<{ count: number }>(
      `task-count:${where.name}`,
      `select count(*)::int as count from (select from a2a_tasks t where ${where.text} limit ${maxCounted + 1}) as counted`,
      where.values,
    );
    const { count } = row!;
    return count > maxCounted ? Math.max(count, await this.estimate(where)) : count;
  }

  private async estimate({ text, values }: Conditions): Promise<number> {
    const { rows } = await this.pg.pool.query<{ 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }>(
      `explain (format json) select from a2a_tasks t where ${text}`,
      values,
    );
    return rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows'];
  }
}

/**
 * Runs a query for each agent that has tasks. Every index of tasks begins with the agent, and an org has few agents;
 * one index step finds each of them. The org must be the first value.
 */
function ofEachAgent(select: string): string {
  const next = (more = ''): string =>
    `select t.agent_id from a2a_tasks t where t.org_id = $1 ${more} order by t.agent_id limit 1`;
  return `with recursive a(id) as ((${next()}) union all select (${next('and t.agent_id > a.id')}) from a where a.id is not null)
    select t.* from a cross join lateral (${select}) t`;
}

/** Conditions joined by `and`. Each has its own label, so that the name of a prepared statement identifies its text. */
class Conditions {
  readonly values: unknown[] = [];
  private readonly parts: string[] = [];
  private readonly labels: string[] = [];

  /** Adds a condition. @param sql with a `%` for each value. */
  add(label: string, sql: string, ...values: unknown[]): void {
    let index = this.values.length;
    this.labels.push(label);
    this.parts.push(sql.replaceAll('%', () => `$${++index}`));
    this.values.push(...values);
  }

  get name(): string {
    return this.labels.join('.');
  }

  get text(): string {
    return this.parts.join(' and ');
  }
}

function conditions({ org, agent, owner, contextId, state, since }: TaskFilter): Conditions {
  const where = new Conditions();
  where.add('org', 't.org_id = %', org);
  if (agent !== undefined) where.add('agent', 't.agent_id = %', agent);
  if (owner !== undefined) where.add('owner', 't.owner = %', owner);
  if (contextId !== undefined) where.add('context', 't.context_id = %', contextId);
  // A literal instead of a parameter, so that the planner can use the partial index.
  if (state !== undefined) where.add(wordOf(state), `t.status_state = '${wordOf(state)}'`);
  if (since !== undefined)
    where.add('since', 't.status_timestamp >= %::text::timestamptz', new Date(since).toISOString());
  return where;
}
