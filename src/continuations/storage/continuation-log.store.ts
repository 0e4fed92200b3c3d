import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { ContinuationStatus } from './continuation.entity.js';
import type { ThreadAnswerStatus } from '../threads/thread-answer.entity.js';

export interface ContinuationFilter {
  readonly status?: ContinuationStatus;
  readonly agentId?: string;
  readonly taskId?: string;
}

/** Rows that a caller may see: all of an org, or those of tasks that belong to `owner`. */
export interface Sight {
  readonly org: OrgId;
  readonly owner?: string;
}

export interface ContinuationRow {
  readonly id: string;
  readonly taskId: string;
  readonly agentId: string;
  readonly agentSlug: string;
  readonly agentUrl: string;
  readonly remoteTaskId: string;
  readonly status: ContinuationStatus;
  readonly attempts: number;
  readonly polls: number;
  readonly deadlineAt: Date;
  readonly nextAt: Date | null;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly endedAt: Date | null;
  /** Status of the answer to a conversation thread; null without a thread. */
  readonly threadStatus: ThreadAnswerStatus | null;
  readonly threadAttempts: number | null;
  readonly threadError: string | null;
  /** `createdAt` with the full precision of the database. */
  readonly at: string;
}

const columns = `c.id, c.task_id as "taskId", c.agent_id as "agentId", c.agent_slug as "agentSlug",
  c.agent_url as "agentUrl", c.remote_task_id as "remoteTaskId", c.status, c.attempts, c.polls,
  c.deadline_at as "deadlineAt", c.next_at as "nextAt", c.last_error as "lastError", c.created_at as "createdAt",
  c.ended_at as "endedAt", a.status as "threadStatus", a.attempts as "threadAttempts", a.last_error as "threadError",
  to_char(c.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const withThreads = `a2a_continuations c
  left join thread_answers a on a.task_id = c.task_id`;
const open: readonly (ContinuationStatus | undefined)[] = ['pending', 'processing', 'delivering'];

/** SQL condition: the owner of a task also owns its continuations. A deleted task has no owner. */
const isSeen = '(:owner::text is null or exists (select from a2a_tasks t where t.id = c.task_id and t.owner = :owner))';

/** Reads continuations for their org, and marks those that it gives up. */
@Injectable()
export class ContinuationLogStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Rows from the newest to the oldest, one more than `limit` when there are more.
   *
   * @param after `at` and `id` of the last row of the page before.
   */
  findPage(
    { org, owner }: Sight,
    { status, agentId, taskId }: ContinuationFilter,
    limit: number,
    after?: readonly string[],
  ) {
    const isOpen = open.includes(status);
    const [afterAt = null, afterId = null] = after ?? [];
    return this.pg.rows<ContinuationRow>(
      `continuation-page-${isOpen ? 'open' : 'any'}`,
      `
      select ${columns}
      from ${withThreads}
      where c.org_id = :org${isOpen ? ' and c.ended_at is null' : ''}
        and (:status::text is null or c.status = :status)
        and (:agentId::uuid is null or c.agent_id = :agentId)
        and (:taskId::uuid is null or c.task_id = :taskId)
        and (:afterAt::timestamptz is null or (c.created_at, c.id) < (:afterAt, :afterId::uuid))
        and ${isSeen}
      order by c.created_at desc, c.id desc
      limit :limit`,
      {
        org,
        status: status ?? null,
        agentId: agentId ?? null,
        taskId: taskId ?? null,
        afterAt,
        afterId,
        owner: owner ?? null,
        limit: limit + 1,
      },
    );
  }

  async find({ org, owner }: Sight, id: string): Promise<ContinuationRow | undefined> {
    const [row] = await this.pg.rows<ContinuationRow>(
      'continuation-one',
      `
      select ${columns}
      from ${withThreads}
      where c.org_id = :org and c.id = :id and ${isSeen}`,
      { org, id, owner: owner ?? null },
    );
    return row;
  }

  /** Id of the task of a continuation, without a check of its owner. */
  async findTaskId(id: string): Promise<string | undefined> {
    const [row] = await this.pg.rows<{ taskId: string }>(
      'continuation-task',
      'select task_id as "taskId" from a2a_continuations where id = :id',
      { id },
    );
    return row?.taskId;
  }

  /** Marks a continuation as failed, also when another process has ended it before. */
  async markGivenUp(id: string, lastError: string): Promise<void> {
    await this.pg.rows(
      'continuation-given-up',
      `
      update a2a_continuations
      set status = 'failed', last_error = :lastError, next_at = null, ended_at = coalesce(ended_at, now()),
        updated_at = now()
      where id = :id`,
      { id, lastError },
    );
  }

  async hasAny(org: OrgId): Promise<boolean> {
    const rows = await this.pg.rows('continuation-any', 'select from a2a_continuations where org_id = :org limit 1', {
      org,
    });
    return rows.length > 0;
  }
}
