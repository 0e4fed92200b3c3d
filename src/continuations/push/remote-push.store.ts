import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { ago } from '../../platform/database/sql.js';
import type { PushKey } from './push-tokens.js';

/** Pushes of remote agents that no poll has followed yet: one row for each task, for any number of pushes. */
@Injectable()
export class RemotePushStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Stores a push. True for the first one since the last poll; false for repeats, and for a task that is no longer
   * worked on.
   */
  async storePush({ taskId, orgId }: PushKey): Promise<boolean> {
    const rows = await this.pg.rows(
      'remote-push-remember',
      `
      insert into remote_pushes (task_id, org_id)
      select :taskId, id
      from orgs
      where id = :orgId and deleted_at is null
        and not exists (select from a2a_tasks where id = :taskId and status_state not in ('submitted', 'working'))
      on conflict (task_id) do nothing
      returning task_id`,
      { taskId, orgId },
    );
    return rows.length > 0;
  }

  /** True when a push was received since the last poll of the remote task. */
  async hasPush(taskId: string): Promise<boolean> {
    const rows = await this.pg.rows('remote-push-open', 'select from remote_pushes where task_id = :taskId', {
      taskId,
    });
    return rows.length > 0;
  }

  /** Deletes the push of a task before a poll: the poll sees everything that was pushed before. */
  async deletePush(taskId: string): Promise<void> {
    await this.pg.rows('remote-push-forget', 'delete from remote_pushes where task_id = :taskId', { taskId });
  }

  /** Deferred tasks with a stored push: it came while the worker released the task, or its notice was lost. */
  async findUnheard(limit: number): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'remote-push-unheard',
      `
      select p.task_id as id
      from remote_pushes p
      where exists (
        select
        from a2a_continuations c
        where c.task_id = p.task_id and c.status = 'pending'
      )
      order by p.at
      limit :limit`,
      { limit },
    );
    return rows.map(({ id }) => id);
  }

  /** Deletes old pushes that no poll will follow: the task has ended or was never stored. */
  async dropOld(olderThanMs: number): Promise<void> {
    await this.pg.rows('remote-push-retention', `delete from remote_pushes where at < ${ago(':olderThanMs')}`, {
      olderThanMs,
    });
  }
}
