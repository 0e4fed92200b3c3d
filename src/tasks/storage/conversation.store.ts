import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { StoredTask } from '../task.types.js';
import { firstListed, taskColumns, TaskStore, type TaskRow } from './task.store.js';

/** One conversation: the tasks of one caller of an org in one context. */
export interface ConversationKey {
  readonly org: string;
  /** `kind:id` of the caller. */
  readonly owner: string;
  readonly contextId: string;
}

/** Position of a task in its conversation: when it was created, in microseconds as the database has it, and its id. */
export type TaskPosition = readonly [at: string, id: string];

/** Reads the tasks of a conversation in their order. */
@Injectable()
export class ConversationStore {
  constructor(
    private readonly pg: Pg,
    private readonly tasks: TaskStore,
  ) {}

  /** The newest task of a context in an org; of one owner, when one is given. */
  async findNewest(org: string, contextId: string, owner: string | undefined): Promise<StoredTask | undefined> {
    const rows = await this.pg.rows<TaskRow>(
      'conversation-newest',
      `
      select ${taskColumns({ artifacts: false, history: false, statusMessage: true })}
      from a2a_tasks t
      where t.context_id = :contextId
        and t.org_id = :org
        and (:owner::text is null or t.owner = :owner)
      order by t.created_at desc, t.id desc
      limit 1`,
      { contextId, org, owner: owner ?? null },
    );
    return (await this.tasks.fold(rows))[0];
  }

  /**
   * Reads at most `limit` tasks after a position, oldest first; fewer when they are too large together. `more` says
   * whether others follow.
   */
  async readTasks(
    { org, owner, contextId }: ConversationKey,
    limit: number,
    [at, id]: TaskPosition = ['-infinity', '00000000-0000-0000-0000-000000000000'],
  ): Promise<{ tasks: readonly { task: StoredTask; at: string }[]; more: boolean }> {
    const rows = await this.pg.rows<TaskRow & { at: string; total: number }>(
      'conversation-tasks',
      firstListed(
        `
        select ${taskColumns()}, t.created_at,
          to_char(t.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
        from a2a_tasks t
        where t.context_id = :contextId
          and (t.created_at, t.id) > (:at::text::timestamptz, :id::uuid)
          and t.org_id = :org
          and t.owner = :owner
        order by t.created_at, t.id
        limit :limit`,
        'created_at, id',
      ),
      { contextId, org, owner, at, id, limit: limit + 1 },
    );
    const tasks = await this.tasks.fold(rows);
    return {
      tasks: tasks.slice(0, limit).map((task, index) => ({ task, at: rows[index]!.at })),
      more: rows.length > 0 && rows[0]!.total > Math.min(rows.length, limit),
    };
  }
}
