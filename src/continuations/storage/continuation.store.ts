import { Injectable } from '@nestjs/common';
import type { Principal } from '../../kernel/call-context.js';
import type { AgentId, OrgId, TaskId } from '../../kernel/ids.js';
import { noTimeByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import { ago, later } from '../../platform/database/sql.js';
import type { ContinuationStatus } from './continuation.entity.js';

export interface NewContinuation {
  readonly id: string;
  readonly taskId: string;
  readonly orgId: string;
  readonly agentId: string;
  readonly agentSlug: string;
  readonly agentUrl: string;
  readonly remoteTaskId: string;
  readonly principal: Principal;
  readonly requestId: string;
  readonly actId: string | null;
  /** Milliseconds that the remote task may take. */
  readonly workMs: number;
}

/** A continuation that a run follows now. */
export interface Followed {
  readonly id: string;
  readonly taskId: TaskId;
  readonly remoteTaskId: string;
  readonly requestId: string;
  /** Act that is ended together with the continuation; null when another process ends it, or has ended it. */
  readonly actId: string | null;
  readonly attempts: number;
  /** Milliseconds left of the time that the remote task may take; negative when it is over. */
  readonly leftMs: number;
  readonly ageMs: number;
}

/** An open continuation of a task that has ended here. */
export interface Orphan {
  readonly id: string;
  readonly taskId: TaskId;
  readonly orgId: OrgId;
  readonly agentId: AgentId;
  readonly remoteTaskId: string;
  readonly principal: Principal;
  readonly attempts: number;
}

// A remote task that asked a question and goes on after the answer keeps its continuation, which starts again.
const openStatement: RowStatement = {
  name: 'continuation-open',
  sql: (rows) => `
    insert into a2a_continuations as c (id, task_id, org_id, agent_id, agent_slug, agent_url, remote_task_id, principal,
      request_id, act_id, status, deadline_at)
    select id, task_id, org_id, agent_id, agent_slug, agent_url, remote_task_id, principal, request_id, act_id,
      'processing', ${later('work_ms')}
    from jsonb_to_recordset(${rows}) as r(
      id uuid, task_id uuid, org_id uuid, agent_id uuid, agent_slug text, agent_url text, remote_task_id text,
      principal json, request_id text, act_id uuid, work_ms bigint)
    on conflict (task_id, agent_url, remote_task_id) do update
    set status = 'processing', attempts = 0, deadline_at = excluded.deadline_at, request_id = excluded.request_id,
      act_id = excluded.act_id, next_at = null, last_error = null, ended_at = null, updated_at = now()`,
};

const moveStatement: RowStatement = {
  name: 'continuation-move',
  sql: (rows) => `
    update a2a_continuations c
    set status = r.status, polls = c.polls + r.polls, last_error = coalesce(r.last_error, c.last_error),
      next_at = ${later('r.due_ms')}, ended_at = case when r.due_ms is null then now() end, updated_at = now()
    from jsonb_to_recordset(${rows}) as r(id uuid, status text, polls integer, last_error text, due_ms bigint)
    where c.id = r.id and ${noTimeByKey('c.ended_at')}`,
};

// The process that made the call also ends its act, unless the act was handed over or the process was killed. In
// these cases the act is still open, or was ended as abandoned.
const openAct = `case
    when exists (
      select
      from a2a_task_instances i
      where i.id = c.act_id and i.status <> 'active' and i.error_code is distinct from 'abandoned'
    ) then null
    else c.act_id
  end`;

/** Row change that opens a continuation, for the commit that stores the id of the remote task. */
export function opening(given: NewContinuation): RowChange {
  const { id, taskId, orgId, agentId, agentSlug, agentUrl, remoteTaskId, principal, requestId, actId, workMs } = given;
  const row = {
    id,
    task_id: taskId,
    org_id: orgId,
    agent_id: agentId,
    agent_slug: agentSlug,
    agent_url: agentUrl,
    remote_task_id: remoteTaskId,
    principal,
    request_id: requestId,
    act_id: actId,
    work_ms: workMs,
  };
  return { statement: openStatement, row };
}

/**
 * Row change that updates a continuation, for the commit of its task.
 *
 * @param dueInMs milliseconds until it is resumed; absent when it has ended.
 */
export function moving(
  { id, taskId }: Pick<Followed, 'id' | 'taskId'>,
  to: { status: ContinuationStatus; polls: number; lastError?: string; dueInMs?: number },
): RowChange {
  const { status, polls, lastError, dueInMs } = to;
  const row = { id, task_id: taskId, status, polls, last_error: lastError ?? null, due_ms: dueInMs ?? null };
  return { statement: moveStatement, row };
}

/** Adds the id of a task to a row of another table: the row is written only together with a change of that task. */
export function ofTask(taskId: string, { statement, row }: RowChange): RowChange {
  return { statement, row: { ...row, task_id: taskId } };
}

/** Reads and writes open continuations. */
@Injectable()
export class ContinuationStore {
  constructor(private readonly pg: Pg) {}

  /** Ids that a remote agent gave to these tasks, as far as it has them. */
  async remoteIdsOf(agent: AgentId, tasks: readonly string[]): Promise<string[]> {
    if (tasks.length === 0) return [];
    const rows = await this.pg.rows<{ id: string }>(
      'continuation-remote-ids',
      `
      select memo ->> 'taskId' as id
      from a2a_tasks
      where id = any(:tasks::uuid[]) and agent_id = :agent and memo ->> 'taskId' is not null`,
      { tasks, agent },
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Resumes a continuation for a worker. Counts one more attempt, unless a push of the remote caused it. Undefined
   * when none is open.
   */
  async resume(taskId: string, remoteTaskId: string): Promise<Followed | undefined> {
    const [row] = await this.pg.rows<Followed>(
      'continuation-take-up',
      `
      with called as (
        delete from remote_pushes
        where task_id = :taskId
        returning task_id
      )
      update a2a_continuations c
      set status = 'processing', attempts = attempts + 1 - (select count(*) from called), next_at = null,
        updated_at = now()
      where task_id = :taskId and remote_task_id = :remoteTaskId and ${noTimeByKey('ended_at')}
      returning id, task_id as "taskId", remote_task_id as "remoteTaskId", request_id as "requestId",
        ${openAct} as "actId", attempts, (extract(epoch from deadline_at - now()) * 1000)::float8 as "leftMs",
        (extract(epoch from now() - created_at) * 1000)::float8 as "ageMs"`,
      { taskId, remoteTaskId },
    );
    return row;
  }

  /**
   * Takes open continuations of tasks that have ended or wait for their caller, so that no run follows them. Counts
   * one attempt for each.
   */
  takeOrphans(limit: number, olderThanMs: number): Promise<Orphan[]> {
    return this.pg.rows<Orphan>(
      'continuation-orphans',
      `
      with orphans as materialized (
        select c.id
        from a2a_continuations c
        where c.ended_at is null and c.updated_at < ${ago(':olderThanMs')}
          and not exists (
            select
            from a2a_tasks t
            where t.id = c.task_id and t.status_state in ('submitted', 'working')
          )
        order by c.created_at
        limit :limit
        for update skip locked
      )
      update a2a_continuations c
      set attempts = c.attempts + 1, updated_at = now()
      from orphans
      where c.id = orphans.id
      returning c.id, c.task_id as "taskId", c.org_id as "orgId", c.agent_id as "agentId",
        c.remote_task_id as "remoteTaskId", c.principal, c.attempts`,
      { limit, olderThanMs },
    );
  }

  /** Ends a continuation that no task waits for. */
  async close(taskId: string, remoteTaskId: string, status: ContinuationStatus, lastError?: string): Promise<void> {
    await this.pg.rows(
      'continuation-close',
      `
      update a2a_continuations
      set status = :status, last_error = coalesce(:lastError, last_error), next_at = null, ended_at = now(),
        updated_at = now()
      where task_id = :taskId and remote_task_id = :remoteTaskId and ${noTimeByKey('ended_at')}`,
      { taskId, remoteTaskId, status, lastError: lastError ?? null },
    );
  }

  /** Deletes ended continuations; returns how many. */
  async dropEnded(days: number, limit: number): Promise<number> {
    const rows = await this.pg.rows(
      'continuation-retention',
      `
      delete from a2a_continuations
      where id in (
        select id
        from a2a_continuations
        where ended_at < now() - make_interval(days => :days::int)
        order by ended_at
        limit :limit
      )
      returning id`,
      { days, limit },
    );
    return rows.length;
  }
}
