import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import type { ConfigKey } from '../delivery/delivery.store.js';
import { isOfOwner } from './own-tasks.js';
import type { PushState } from '../configs/push-config.entity.js';

export interface ConfigRow {
  readonly taskId: string;
  readonly id: string;
  readonly url: string;
  readonly format: PushFormat;
  readonly state: PushState;
  readonly reason: string | null;
  readonly failingSince: Date | null;
  readonly createdAt: Date;
  /** `createdAt` as text, with the precision of the database. */
  readonly at: string;
}

export interface ConfigFilter {
  readonly state?: PushState;
  readonly taskId?: string;
  /** `kind:id`; absent: configurations of every task of the org. */
  readonly owner?: string;
}

const columns = `task_id as "taskId", id, url, format, state, reason,
  case when state <> 'active' then failing_since end as "failingSince", created_at as "createdAt",
  to_char(created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`;
const isGiven = 'org_id = :org and task_id = :taskId and id = :configId';
const isPendingOfGiven = "d.org_id = :org and d.task_id = :taskId and d.config_id = :configId and d.status = 'pending'";

/** Reads push configurations for the admin API, and switches them off and on. Returns no sealed values. */
@Injectable()
export class ConfigLogStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Configurations, newest first, one more than `limit` when there are more. @param after `at`, `taskId` and `id` of a
   * row.
   */
  findPage(
    org: OrgId,
    { state, taskId, owner }: ConfigFilter,
    limit: number,
    after?: readonly string[],
  ): Promise<ConfigRow[]> {
    const [afterAt = null, afterTaskId = null, afterId = null] = after ?? [];
    return this.pg.rows<ConfigRow>(
      'push-config-log',
      `
      select ${columns}
      from push_configs
      where org_id = :org and (:state::text is null or state = :state) and (:taskId::uuid is null or task_id = :taskId)
        and ${isOfOwner('task_id')}
        and (:afterAt::timestamptz is null or (created_at, task_id, id) < (:afterAt, :afterTaskId::uuid, :afterId))
      order by created_at desc, task_id desc, id desc
      limit :limit`,
      {
        org,
        state: state ?? null,
        taskId: taskId ?? null,
        owner: owner ?? null,
        afterAt,
        afterTaskId,
        afterId,
        limit: limit + 1,
      },
    );
  }

  /** One configuration; undefined when there is none. @param owner as in a filter. */
  async find(org: OrgId, { taskId, configId }: ConfigKey, owner: string | undefined): Promise<ConfigRow | undefined> {
    const [row] = await this.pg.rows<ConfigRow>(
      'push-config-one',
      `
      select ${columns}
      from push_configs
      where ${isGiven} and ${isOfOwner('task_id')}`,
      { org, taskId, configId, owner: owner ?? null },
    );
    return row;
  }

  /**
   * Disables a configuration: no worker claims its deliveries any more. A delivery in progress may finish; waiting ones
   * become `dead`.
   */
  async deactivate(tx: Tx, org: OrgId, { taskId, configId }: ConfigKey, reason: string): Promise<void> {
    // Locks the configuration first, as every writer does, to avoid deadlocks.
    await queryIn(
      tx,
      `
      update push_configs
      set state = 'disabled', reason = :reason
      where ${isGiven} and state <> 'disabled'`,
      { org, taskId, configId, reason },
    );
    await queryIn(
      tx,
      `
      update webhook_deliveries d
      set status = 'dead', last_error = :reason, ended_at = now()
      where ${isPendingOfGiven} and d.lease_until is null`,
      { org, taskId, configId, reason },
    );
  }

  /**
   * Activates a disabled configuration. Earlier failures no longer count, and deliveries from before that are still in
   * progress are not retried.
   */
  async activate(tx: Tx, org: OrgId, { taskId, configId }: ConfigKey): Promise<void> {
    const [disabled] = await queryIn<{ reason: string | null }[]>(
      tx,
      `
      select reason
      from push_configs
      where ${isGiven} and state = 'disabled'
      for update`,
      { org, taskId, configId },
    );
    if (!disabled) return;
    await queryIn(
      tx,
      `
      update webhook_deliveries d
      set status = 'dead', last_error = :reason, ended_at = now(), lease_owner = null, lease_until = null
      where ${isPendingOfGiven}`,
      { org, taskId, configId, reason: disabled.reason },
    );
    await queryIn(
      tx,
      `
      update push_configs
      set state = 'active', reason = null, failing_since = null
      where ${isGiven} and state = 'disabled'`,
      { org, taskId, configId },
    );
  }
}
