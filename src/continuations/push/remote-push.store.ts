import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { PushKey } from './push-tokens.js';

/** Pushes of remote agents that no look has followed yet: one for each task, however many came. */
@Injectable()
export class RemotePushStore {
  constructor(private readonly pg: Pg) {}

  /** True for the first since the last look; false for its repeats, and for one of a task that nobody works on any more. */
  async remember({ taskId, orgId }: PushKey): Promise<boolean> {
    const rows = await this.pg.rows(
      'remote-push-remember',
      `insert into remote_pushes (task_id, org_id) select $1, id from orgs where id = $2 and deleted_at is null
         and not exists (select from a2a_tasks where id = $1 and status_state not in ('submitted', 'working'))
       on conflict (task_id) do nothing returning task_id`,
      [taskId, orgId],
    );
    return rows.length > 0;
  }

  /** True when a push was received since the last poll of the remote task. */
  async isOpen(taskId: string): Promise<boolean> {
    const rows = await this.pg.rows('remote-push-open', 'select from remote_pushes where task_id = $1', [taskId]);
    return rows.length > 0;
  }

  /** A look begins now: what came before it needs no other. */
  async forget(taskId: string): Promise<void> {
    await this.pg.rows('remote-push-forget', 'delete from remote_pushes where task_id = $1', [taskId]);
  }

  /** Tasks that were put off although there was something to look at: the push came while they were let go of, or its ring was lost. */
  async unheard(limit: number): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'remote-push-unheard',
      `select p.task_id as id from remote_pushes p where exists (
         select from a2a_continuations c where c.task_id = p.task_id and c.status = 'pending') order by p.at limit $1`,
      [limit],
    );
    return rows.map(({ id }) => id);
  }

  /** Drops what no look will follow: its task ended, or never came to be. */
  async dropOld(olderThanMs: number): Promise<void> {
    await this.pg.rows(
      'remote-push-retention',
      `delete from remote_pushes where at < now() - $1 * interval '1 millisecond'`,
      [olderThanMs],
    );
  }
}
