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
  readonly task_id: string;
  readonly agent_id: string;
  readonly agent_slug: string;
  readonly agent_url: string;
  readonly remote_task_id: string;
  readonly status: ContinuationStatus;
  readonly attempts: number;
  readonly polls: number;
  readonly deadline_at: Date;
  readonly next_at: Date | null;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly ended_at: Date | null;
  /** Status of the answer to a conversation thread; null without a thread. */
  readonly thread_status: ThreadAnswerStatus | null;
  readonly thread_attempts: number | null;
  readonly thread_error: string | null;
  /** `created_at` with the full precision of the database. */
  readonly at: string;
}

const columns = `c.id, c.task_id, c.agent_id, c.agent_slug, c.agent_url, c.remote_task_id, c.status, c.attempts, c.polls, c.deadline_at, c.next_at,
  c.last_error, c.created_at, c.ended_at, a.status as thread_status, a.attempts as thread_attempts, a.last_error as thread_error, to_char(c.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const rows = 'a2a_continuations c left join thread_answers a on a.task_id = c.task_id';
const open: readonly (ContinuationStatus | undefined)[] = ['pending', 'processing', 'delivering'];

/** SQL condition: the owner of a task also owns its continuations. A deleted task has no owner. */
const isSeen = (owner: string): string =>
  `(${owner}::text is null or exists (select from a2a_tasks t where t.id = c.task_id and t.owner = ${owner}))`;

/** Reads continuations for their org. */
@Injectable()
export class ContinuationListStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Rows from the newest to the oldest, one more than `limit` when there are more.
   *
   * @param after `at` and `id` of the last row of the page before.
   */
  page(
    { org, owner }: Sight,
    { status, agentId, taskId }: ContinuationFilter,
    limit: number,
    after?: readonly string[],
  ) {
    const isOpen = open.includes(status);
    return this.pg.rows<ContinuationRow & Record<string, unknown>>(
      `continuation-page-${isOpen ? 'open' : 'any'}`,
      `select ${columns} from ${rows} where c.org_id = $1${isOpen ? ' and c.ended_at is null' : ''}
         and ($2::text is null or c.status = $2) and ($3::uuid is null or c.agent_id = $3) and ($4::uuid is null or c.task_id = $4)
         and ($5::timestamptz is null or (c.created_at, c.id) < ($5, $6::uuid)) and ${isSeen('$8')}
       order by c.created_at desc, c.id desc limit $7`,
      [org, status ?? null, agentId ?? null, taskId ?? null, ...(after ?? [null, null]), limit + 1, owner ?? null],
    );
  }

  async find({ org, owner }: Sight, id: string): Promise<ContinuationRow | undefined> {
    const [row] = await this.pg.rows<ContinuationRow & Record<string, unknown>>(
      'continuation-one',
      `select ${columns} from ${rows} where c.org_id = $1 and c.id = $2 and ${isSeen('$3')}`,
      [org, id, owner ?? null],
    );
    return row;
  }

  /** Id of the task of a continuation, without a check of its owner. */
  async taskOf(id: string): Promise<string | undefined> {
    const [row] = await this.pg.rows<{ task_id: string }>(
      'continuation-task',
      'select task_id from a2a_continuations where id = $1',
      [id],
    );
    return row?.task_id;
  }

  async hasAny(org: OrgId): Promise<boolean> {
    const rows = await this.pg.rows('continuation-any', 'select from a2a_continuations where org_id = $1 limit 1', [
      org,
    ]);
    return rows.length > 0;
  }
}
