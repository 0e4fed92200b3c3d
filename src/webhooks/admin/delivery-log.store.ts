import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import type { ConfigKey } from '../delivery/delivery.store.js';
import { isOfOwner } from './own-tasks.js';
import type { PushState } from '../configs/push-config.entity.js';
import type { DeliveryState } from './webhook.types.js';

/** A filter for the deliveries of an org; an absent member matches all. */
export interface DeliveryFilter {
  readonly state?: DeliveryState;
  readonly taskId?: string;
  readonly configId?: string;
  /** Time of creation, ISO 8601: `from` inclusive, `to` exclusive. */
  readonly from?: string;
  readonly to?: string;
  /** `kind:id`; absent: deliveries of every task of the org. */
  readonly owner?: string;
}

export interface DeliveryRow {
  readonly id: string;
  readonly taskId: string;
  readonly configId: string;
  readonly seq: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly earlierAttempts: number;
  /** Null when the configuration is deleted; so is `format`. */
  readonly url: string | null;
  readonly format: PushFormat | null;
  readonly configState: PushState | null;
  readonly configReason: string | null;
  readonly body: string | null;
  readonly nextAt: Date;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly endedAt: Date | null;
  /** `createdAt` as text, with the precision of the database. */
  readonly at: string;
}

export interface AttemptRow {
  readonly number: number;
  readonly endedAt: Date;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly reply: string | null;
}

const stateOf = `case
    when d.status <> 'pending' then d.status
    when d.lease_until > now() then 'processing'
    when d.attempts > d.earlier_attempts then 'failed'
    else 'pending'
  end`;
const createdAtText = `to_char(d.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
const columns = `d.id, d.task_id as "taskId", d.config_id as "configId", d.seq, ${stateOf} as state, d.attempts,
  d.earlier_attempts as "earlierAttempts", c.url, c.format, c.state as "configState", c.reason as "configReason",
  d.body, d.next_at as "nextAt", d.last_status as "lastStatus", d.last_error as "lastError",
  d.created_at as "createdAt", d.ended_at as "endedAt", ${createdAtText} as at`;
const withConfig = `webhook_deliveries d
  left join push_configs c on c.task_id = d.task_id and c.id = d.config_id`;
const conditions = `d.org_id = :org
  and (:taskId::uuid is null or d.task_id = :taskId)
  and (:configId::text is null or d.config_id = :configId)
  and (:from::timestamptz is null or d.created_at >= :from)
  and (:to::timestamptz is null or d.created_at < :to)
  and ${isOfOwner('d.task_id')}`;
const waits = `d.status = 'pending' and (d.lease_until > now()) is not true`;
/**
 * Conditions equal to `stateOf`, in a form that the planner can estimate. Failed deliveries and those in progress have
 * their own index.
 */
const inState: Record<DeliveryState, string> = {
  pending: `${waits} and d.attempts <= d.earlier_attempts`,
  processing: `d.status = 'pending' and d.lease_until > now()`,
  failed: `${waits} and d.attempts > d.earlier_attempts`,
  delivered: `d.status = 'delivered'`,
  dead: `d.status = 'dead'`,
  skipped: `d.status = 'skipped'`,
};
const matching = ({ state }: DeliveryFilter): string => (state ? `${conditions} and ${inState[state]}` : conditions);
/**
 * Configurations with a delivery in progress, and the latest time at which it ends: the next delivery must not be
 * posted beside it.
 */
const busy = `busy as materialized (
    select task_id, config_id, max(lease_until) as until
    from webhook_deliveries
    where org_id = :org and status = 'pending' and lease_until > now()
    group by task_id, config_id
  )`;
const free = `coalesce((select b.until from busy b where b.task_id = d.task_id and b.config_id = d.config_id), now())`;
/** Restarts a delivery as if it were new. Only for a configuration that is neither disabled nor deleted. */
const restart = `update webhook_deliveries d
  set status = 'pending', next_at = ${free}, earlier_attempts = d.attempts, ended_at = null, lease_owner = null,
    lease_until = null`;
const isOpen = `exists (
    select
    from push_configs c
    where c.task_id = d.task_id and c.id = d.config_id and c.state <> 'disabled'
  )`;
/** A delivery that is new or in progress needs no restart. */
const mayRestart = `(d.status <> 'pending'
    or (d.attempts > d.earlier_attempts and (d.lease_until is null or d.lease_until < now())))`;

/** The parameters of `conditions`, and of a page after a row. */
const paramsOf = (
  org: OrgId,
  { taskId, configId, from, to, owner }: DeliveryFilter,
  [afterAt, afterSeq, afterId]: readonly string[] = [],
) => ({
  org,
  taskId: taskId ?? null,
  configId: configId ?? null,
  from: from ?? null,
  to: to ?? null,
  owner: owner ?? null,
  afterAt: afterAt ?? null,
  afterSeq: afterSeq ?? null,
  afterId: afterId ?? null,
});

/** Reads deliveries for the admin API, and restarts them. */
@Injectable()
export class DeliveryLogStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Deliveries, newest first, one more than `limit` when there are more. @param after `at`, `seq` and `id` of a row.
   */
  findPage(org: OrgId, filter: DeliveryFilter, limit: number, after?: readonly string[]): Promise<DeliveryRow[]> {
    return this.pg.rows<DeliveryRow>(
      `delivery-page-${filter.state ?? 'any'}`,
      `
      select ${columns}
      from ${withConfig}
      where ${matching(filter)}
        and (
          :afterAt::timestamptz is null or (d.created_at, d.seq, d.id) < (:afterAt, :afterSeq::integer, :afterId::uuid)
        )
      order by d.created_at desc, d.seq desc, d.id desc
      limit :limit`,
      { ...paramsOf(org, filter, after), limit: limit + 1 },
    );
  }

  /** One delivery; undefined when there is none. @param owner as in a filter. */
  async find(org: OrgId, id: string, owner: string | undefined): Promise<DeliveryRow | undefined> {
    const [row] = await this.pg.rows<DeliveryRow>(
      'delivery-one',
      `
      select ${columns}
      from ${withConfig}
      where d.org_id = :org and d.id = :id and ${isOfOwner('d.task_id')}`,
      { org, id, owner: owner ?? null },
    );
    return row;
  }

  /** The attempts of a delivery, oldest first. */
  attempts(id: string): Promise<AttemptRow[]> {
    return this.pg.rows<AttemptRow>(
      'delivery-attempts',
      `
      select number, at as "endedAt", duration_ms as "durationMs", status, error, reply
      from webhook_attempts
      where delivery_id = :id
      order by number`,
      { id },
    );
  }

  /** Number of deliveries by state, of those created in a range. */
  counts(
    org: OrgId,
    { from, to, owner }: Pick<DeliveryFilter, 'from' | 'to' | 'owner'>,
  ): Promise<{ state: DeliveryState; count: number }[]> {
    return this.pg.rows(
      'delivery-counts',
      `
      select ${stateOf} as state, count(*)::int as count
      from webhook_deliveries d
      where d.org_id = :org and d.created_at >= :from and (:to::timestamptz is null or d.created_at < :to)
        and ${isOfOwner('d.task_id')}
      group by 1`,
      { org, from, to: to ?? null, owner: owner ?? null },
    );
  }

  /** Restarts a delivery. Returns undefined when it may not be restarted. */
  async redeliver(tx: Tx, org: OrgId, id: string): Promise<ConfigKey | undefined> {
    const [rows] = await queryIn<[ConfigKey[], number]>(
      tx,
      `
      with ${busy}
      ${restart}
      where d.org_id = :org and d.id = :id and ${mayRestart} and ${isOpen}
      returning d.task_id as "taskId", d.config_id as "configId"`,
      { org, id },
    );
    return rows[0];
  }

  /**
   * Restarts the oldest `limit` matching deliveries that may be restarted; returns them in order. @param after as in
   * `page`.
   */
  async replay(
    tx: Tx,
    org: OrgId,
    filter: DeliveryFilter,
    limit: number,
    after?: readonly string[],
  ): Promise<(ConfigKey & { readonly place: readonly string[] })[]> {
    // Makes the planner use the index of the org, where a page costs only what it holds. When the planner expects few
    // matching rows, it sorts all remaining rows for each page.
    if (filter.taskId === undefined)
      await tx.manager.query(
        `select set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true)`,
      );
    const rows = await queryIn<(ConfigKey & { at: string; seq: number; id: string })[]>(
      tx,
      `
      with ${busy},
      chosen as (
        select d.id
        from webhook_deliveries d
        where ${matching(filter)} and ${mayRestart} and ${isOpen}
          and (
            :afterAt::timestamptz is null
            or (d.created_at, d.seq, d.id) > (:afterAt, :afterSeq::integer, :afterId::uuid)
          )
        order by d.created_at, d.seq, d.id
        limit :limit
        for update skip locked
      ),
      begun as (
        ${restart}
        from chosen
        where d.id = chosen.id
        returning d.*
      )
      select d.task_id as "taskId", d.config_id as "configId", ${createdAtText} as at, d.seq, d.id
      from begun d
      order by d.created_at, d.seq, d.id`,
      { ...paramsOf(org, filter, after), limit },
    );
    return rows.map(({ taskId, configId, at, seq, id }) => ({ taskId, configId, place: [at, String(seq), id] }));
  }
}
