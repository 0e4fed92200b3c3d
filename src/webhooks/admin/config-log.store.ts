import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { Tx } from '../../platform/database/tx.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import type { ConfigKey } from '../delivery/delivery.store.js';
import { isOfOwner } from './own-tasks.js';
import type { PushState } from '../configs/push-config.entity.js';

export interface ConfigRow {
  readonly task_id: string;
  readonly id: string;
  readonly url: string;
  readonly format: PushFormat;
  readonly state: PushState;
  readonly reason: string | null;
  readonly failing_since: Date | null;
  readonly created_at: Date;
  /** `created_at` as text, with the precision of the database. */
  readonly at: string;
}

export interface ConfigFilter {
  readonly state?: PushState;
  readonly taskId?: string;
  /** `kind:id`; absent: configurations of every task of the org. */
  readonly owner?: string;
}

const columns = `task_id, id, url, format, state, reason, case when state <> 'active' then failing_since end as failing_since, created_at,
  to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const one = 'org_id = $1 and task_id = $2 and id = $3';

/** Reads push configurations for the admin API, and switches them off and on. Returns no sealed values. */
@Injectable()
export class ConfigLogStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Configurations, newest first, one more than `limit` when there are more. @param after `at`, `task_id` and `id` of a
   * row.
   */
  page(
    org: OrgId,
    { state, taskId, owner }: ConfigFilter,
    limit: number,
    after?: readonly string[],
  ): Promise<ConfigRow[]> {
    return this.pg.rows<ConfigRow>(
      'push-config-log',
      `select ${columns} from push_configs where org_id = $1 and ($2::text is null or state = $2) and ($3::uuid is null or task_id = $3)
         and ${isOfOwner('$4', 'task_id')} and ($5::timestamptz is null or (created_at, task_id, id) < ($5, $6::uuid, $7))
       order by created_at desc, task_id desc, id desc limit $8`,
      [org, state ?? null, taskId ?? null, owner ?? null, ...(after ?? [null, null, null]), limit + 1],
    );
  }

  /** One configuration; undefined when there is none. @param owner as in a filter. */
  async find(org: OrgId, { taskId, configId }: ConfigKey, owner: string | undefined): Promise<ConfigRow | undefined> {
    const [row] = await this.pg.rows<ConfigRow>(
      'push-config-one',
      `select ${columns} from push_configs where ${one} and ${isOfOwner('$4', 'task_id')}`,
      [org, taskId, configId, owner ?? null],
    );
    return row;
  }

  /**
   * Disables a configuration: no worker claims its deliveries any more. A delivery in progress may finish; waiting ones
   * become `dead`.
   */
  async deactivate(tx: Tx, org: OrgId, { taskId, configId }: ConfigKey, reason: string): Promise<void> {
    // Locks the configuration first, as every writer does, to avoid deadlocks.
    await tx.manager.query(
      `update push_configs set state = 'disabled', reason = $4 where ${one} and state <> 'disabled'`,
      [org, taskId, configId, reason],
    );
    await tx.manager.query(
      `update webhook_deliveries d set status = 'dead', last_error = $4, ended_at = now()
       where d.org_id = $1 and d.task_id = $2 and d.config_id = $3 and d.status = 'pending' and d.lease_until is null`,
      [org, taskId, configId, reason],
    );
  }

  /**
   * Activates a disabled configuration. Earlier failures no longer count, and deliveries from before that are still in
   * progress are not retried.
   */
  async activate(tx: Tx, org: OrgId, { taskId, configId }: ConfigKey): Promise<void> {
    const [disabled] = await tx.manager.query<{ reason: string | null }[]>(
      `select reason from push_configs where ${one} and state = 'disabled' for update`,
      [org, taskId, configId],
    );
    if (!disabled) return;
    await tx.manager.query(
      `update webhook_deliveries d set status = 'dead', last_error = $4, ended_at = now(), lease_owner = null, lease_until = null
       where d.org_id = $1 and d.task_id = $2 and d.config_id = $3 and d.status = 'pending'`,
      [org, taskId, configId, disabled.reason],
    );
    await tx.manager.query(
      `update push_configs set state = 'active', reason = null, failing_since = null where ${one} and state = 'disabled'`,
      [org, taskId, configId],
    );
  }
}
