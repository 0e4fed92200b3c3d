import { Injectable } from '@nestjs/common';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { textByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import { later } from '../../platform/database/sql.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import type { SealedConfig } from '../configs/push-config.store.js';
import { lastingSecrets, type SealedSecret } from '../configs/webhook-secret.store.js';

/** Longer than an attempt can take; a killed process is taken over at once (platform/database/presence.ts). */
const leaseMs = 30_000;

export interface ConfigKey {
  readonly taskId: string;
  readonly configId: string;
}

/** The first pending delivery of a configuration, claimed by this process for one attempt. */
export interface Claimed extends SealedConfig, ConfigKey {
  readonly delivery: string;
  readonly seq: number;
  /** Key of the owner of the task, with its org. */
  readonly sender: string;
  /** The number of this attempt, from 1. */
  readonly attempts: number;
  /** Attempts before the last restart of the delivery. */
  readonly earlierAttempts: number;
  readonly body: string | null;
  /** True when the process that had claimed it before was lost. */
  readonly isTakenOver: boolean;
  /** Age of its event. */
  readonly ageSeconds: number;
  /** Identifies this claim. */
  readonly lease: string;
  /** Null when the configuration is deleted, like its other columns. */
  readonly state: 'active' | 'failing' | 'disabled' | null;
  /** Why it is disabled. */
  readonly reason: string | null;
  /** Milliseconds since the first failure after the last success. */
  readonly failingMs: number | null;
  readonly format: PushFormat;
  /** Changes when the configuration is replaced. */
  readonly stamp: string | null;
  /** The active signing secrets of the org, newest first. */
  readonly secrets: readonly SealedSecret[];
}

/** The stored result of one attempt. */
export interface Tried {
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
  readonly reply?: string;
}

interface BodyToStore {
  readonly claimed: Claimed;
  readonly body: string;
}

/** A configuration with a due first delivery. */
export interface DueDelivery extends ConfigKey {
  /** True when the process that had claimed it was lost. */
  readonly isOrphan: boolean;
}

interface ClaimRequest {
  readonly key: ConfigKey;
  readonly saturated: readonly string[];
}

interface EndedDelivery {
  readonly claimed: Claimed;
  readonly tried: Tried;
  readonly claimNext: boolean;
}

interface DeferredClaim {
  readonly claimed: Claimed;
  readonly inMs: number;
}

/** SQL assignments that release a claim. */
export const released = 'lease_owner = null, lease_until = null';
/** Hash of the receiver and the format of a configuration `c`, which callers may replace during an attempt. */
export const stampOf = `hashtextextended(row(c.url, c.token, c.authentication, c.format)::text, 0)::text`;
/** A success counts also for a delivery that is dead since its configuration was switched off and on meanwhile. */
export const mayEnd = (row: string): string => `${textByKey(`${row}status`)} in ('pending', 'dead')`;
/** The first pending delivery of each given configuration. @param but a condition that excludes deliveries. */
const headOf = (configs: string, but = ''): string => `
  select h.*
  from ${configs}
  cross join lateral (
    select id, task_id, config_id, lease_until is not null as taken_over
    from webhook_deliveries p
    where p.task_id = ${configs}.task_id and p.config_id = ${configs}.config_id ${but} and p.status = 'pending'
    order by p.seq
    limit 1
  ) h`;
/** Key of the owner of a task, by one primary key look-up for each row. The owner of a deleted task is empty. */
const senderOf = `d.org_id || ' ' || coalesce((select t.owner from a2a_tasks t where t.id = d.task_id), '')`;
/** SQL condition: the sender of a delivery is not in the parameter `saturated`. */
const isNotSaturated = `(cardinality(:saturated::text[]) = 0 or ${senderOf} <> all(:saturated::text[]))`;
const isUnclaimed = isFree('d', { self: ':self', trust: ':trust' });
/** Claims the due and free deliveries of `head`. @param also a condition. */
const claimHead = (also = ''): string => `
  update webhook_deliveries d
  set attempts = d.attempts + 1, lease_owner = :self, lease_until = ${later(leaseMs)}
  from head
  left join push_configs c on c.task_id = head.task_id and c.id = head.config_id
  where d.id = head.id and ${textByKey('d.status')} = 'pending' and d.next_at <= now() and ${isUnclaimed} ${also}
  returning d.id as delivery, ${senderOf} as sender, d.lease_until::text as lease, d.seq, d.attempts,
    d.earlier_attempts as "earlierAttempts", d.body, d.task_id as "taskId", d.config_id as "configId",
    d.org_id as "orgId", head.taken_over as "isTakenOver",
    extract(epoch from now() - d.created_at)::float8 as "ageSeconds",
    c.id, c.url, c.token, c.authentication, c.format, c.state, c.reason, ${stampOf} as stamp,
    extract(epoch from now() - case when c.state = 'failing' then c.failing_since end)::float8 * 1000 as "failingMs",
    ${lastingSecrets('d.org_id')} as secrets`;

/**
 * Stores deliveries and their claims, by the clock of the database. `DeliveryOutcomeStore` stores the attempts that end
 * otherwise than with the usual success.
 */
@Injectable()
export class DeliveryStore {
  // Calls that arrive during a statement are combined into the next one; configurations share no rows.
  private readonly claims = new GroupCommit((requests: ClaimRequest[]) => this.claimAll(requests), {
    keysOf: ({ key }) => [configName(key)],
  });
  private readonly bodies = new GroupCommit((bodies: BodyToStore[]) => this.storeBodies(bodies));
  private readonly ends = new GroupCommit((ended: EndedDelivery[]) => this.endAll(ended), {
    keysOf: ({ claimed }) => [configName(claimed)],
  });
  private readonly deferrals = new GroupCommit((deferred: DeferredClaim[]) => this.deferAll(deferred));

  constructor(
    private readonly pg: Pg,
    private readonly presence: Presence,
  ) {}

  /**
   * Claims the first due delivery of a configuration: one at a time, and in order. Returns undefined when none is due,
   * another process has it, or its sender is one of the `saturated`.
   */
  claim(key: ConfigKey, saturated: readonly string[] = []): Promise<Claimed | undefined> {
    return this.claims.commit({ key, saturated });
  }

  /** Stores the body for this attempt and all later ones. Returns false when the claim is lost. */
  keepBody(claimed: Claimed, body: string): Promise<boolean> {
    return this.bodies.commit({ claimed, body });
  }

  /** Stores a success. With `claimNext`, the statement also claims the next due delivery of the configuration. */
  delivered(claimed: Claimed, tried: Tried, claimNext = false): Promise<Claimed | undefined> {
    return this.ends.commit({ claimed, tried, claimNext });
  }

  /** Releases a claim uncounted; it and later ones are due in `inMs`. Returns that time; undefined when it is lost. */
  defer(claimed: Claimed, inMs: number): Promise<string | undefined> {
    return this.deferrals.commit({ claimed, inMs });
  }

  // Conditions such as `> 0` are always true; they keep the planner from expecting many rows and scanning whole tables.
  private async claimAll(requests: readonly ClaimRequest[]): Promise<(Claimed | undefined)[]> {
    const keys = requests.map(({ key }) => key);
    const rows = await this.pg.rows<Claimed>(
      'delivery-claim',
      `
      with wanted as (
        select *
        from unnest(:taskIds::uuid[], :configIds::text[]) as r(task_id, config_id)
        where r.config_id is not null
      ),
      head as materialized (${headOf('wanted')})
      ${claimHead(`and ${isNotSaturated}`)}`,
      {
        taskIds: keys.map(({ taskId }) => taskId),
        configIds: keys.map(({ configId }) => configId),
        ...this.holder,
        saturated: requests.at(-1)!.saturated,
      },
    );
    return inOrderOf(keys, rows);
  }

  private async storeBodies(bodies: readonly BodyToStore[]): Promise<boolean[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'delivery-body',
      `
      update webhook_deliveries d
      set body = r.body
      from unnest(:ids::uuid[], :attempts::integer[], :bodies::text[]) as r(id, attempts, body)
      where d.id = r.id and r.attempts > 0 and d.attempts = r.attempts and ${textByKey('d.status')} = 'pending'
      returning d.id`,
      {
        ids: bodies.map(({ claimed }) => claimed.delivery),
        attempts: bodies.map(({ claimed }) => claimed.attempts),
        bodies: bodies.map(({ body }) => body),
      },
    );
    const done = new Set(rows.map(({ id }) => id));
    return bodies.map(({ claimed }) => done.has(claimed.delivery));
  }

  private async endAll(ended: readonly EndedDelivery[]): Promise<(Claimed | undefined)[]> {
    const tries = ended.map(({ claimed, tried }) => tryParams(claimed, tried));
    const rows = await this.pg.rows<Claimed>(
      'delivery-done',
      // Other parts of the statement still see an ended delivery as pending, so it is excluded by its id.
      `
      with r as (
        select *
        from unnest(:ids::uuid[], :attempts::integer[], :durations::integer[], :statuses::integer[], :errors::text[],
          :replies::text[], :goOn::boolean[]) as r(id, number, duration_ms, status, error, reply, goes_on)
        where r.number > 0
      ),
      tried as (
        insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
        select id, number, duration_ms, status, error, reply
        from r
        on conflict do nothing
      ),
      done as (
        update webhook_deliveries d
        set status = 'delivered', ${released}, last_status = r.status, last_error = null, ended_at = now()
        from r
        where d.id = r.id and d.attempts = r.number and ${mayEnd('d.')}
        returning d.id, d.task_id, d.config_id, r.goes_on
      ),
      head as materialized (${headOf('done', 'and p.id <> done.id')} where done.goes_on)
      ${claimHead()}`,
      {
        ids: tries.map(({ id }) => id),
        attempts: tries.map(({ attempt }) => attempt),
        durations: tries.map(({ durationMs }) => durationMs),
        statuses: tries.map(({ status }) => status),
        errors: tries.map(({ error }) => error),
        replies: tries.map(({ reply }) => reply),
        goOn: ended.map(({ claimNext }) => claimNext),
        ...this.holder,
      },
    );
    return inOrderOf(
      ended.map(({ claimed }) => claimed),
      rows,
    );
  }

  private async deferAll(deferred: readonly DeferredClaim[]): Promise<(string | undefined)[]> {
    const rows = await this.pg.rows<{ id: string; until: string }>(
      'delivery-put-off',
      `
      with r as (
        select *
        from unnest(:ids::uuid[], :leases::text[], :delays::bigint[]) as r(id, lease, ms)
        where r.ms > 0
      ),
      done as (
        update webhook_deliveries d
        set attempts = d.attempts - 1, ${released}, next_at = ${later('r.ms')}
        from r
        where d.id = r.id and d.lease_until = r.lease::timestamptz and ${textByKey('d.status')} = 'pending'
        returning d.id, d.task_id, d.config_id, d.seq, d.next_at
      ),
      others as (
        update webhook_deliveries d
        set next_at = done.next_at
        from done
        where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq
      )
      select id, next_at::text as until
      from done`,
      {
        ids: deferred.map(({ claimed }) => claimed.delivery),
        leases: deferred.map(({ claimed }) => claimed.lease),
        delays: deferred.map(({ inMs }) => Math.max(1, inMs)),
      },
    );
    const until = new Map(rows.map((row) => [row.id, row.until]));
    return deferred.map(({ claimed }) => until.get(claimed.delivery));
  }

  /** Number of due deliveries without a holder, also behind a failing one, and the age of the oldest. */
  async countWaiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'delivery-waits',
      `
      select count(*)::int as count, coalesce(extract(epoch from now() - min(due.next_at)), 0)::float8 as "lagSeconds"
      from (
        select d.next_at
        from webhook_deliveries d
        where d.status = 'pending' and d.next_at <= now() and ${isUnclaimed}
        order by d.next_at
        limit ${mostCounted}
      ) due`,
      this.holder,
    );
    return row!;
  }

  /** Makes waiting deliveries of a configuration due now. @param until only those with exactly this due time. */
  async makeDueNow({ taskId, configId }: ConfigKey, until?: string): Promise<void> {
    await this.pg.rows(
      'delivery-hurry',
      `
      update webhook_deliveries d
      set next_at = now()
      where d.task_id = :taskId and d.config_id = :configId and d.status = 'pending' and d.next_at > now()
        and (:until::timestamptz is null or d.next_at = :until)`,
      { taskId, configId, until: until ?? null },
    );
  }

  /** Configurations with a due and free first delivery, longest waiting first, without those of `saturated` senders. */
  async findDue(limit: number, saturated: readonly string[] = []): Promise<DueDelivery[]> {
    return this.pg.rows<DueDelivery>(
      'delivery-due',
      `
      select d.task_id as "taskId", d.config_id as "configId", d.lease_until is not null as "isOrphan"
      from webhook_deliveries d
      where d.status = 'pending' and d.next_at <= now() and ${isUnclaimed} and not exists (
          select
          from webhook_deliveries h
          where h.task_id = d.task_id and h.config_id = d.config_id and h.status = 'pending' and h.seq < d.seq
        )
        and ${isNotSaturated}
      order by d.next_at
      limit :limit`,
      { limit, ...this.holder, saturated },
    );
  }

  /** The parameters of `isUnclaimed`. */
  private get holder(): { self: number; trust: number } {
    return { self: this.presence.id, trust: this.presence.trust };
  }
}

/** The parameters of an attempt that is stored. */
export function tryParams({ delivery, attempts }: Claimed, { durationMs, status, error, reply }: Tried) {
  return {
    id: delivery,
    attempt: attempts,
    durationMs: Math.round(durationMs),
    status: status ?? null,
    error: error ?? null,
    reply: reply ?? null,
  };
}

function configName({ taskId, configId }: ConfigKey): string {
  return `${taskId} ${configId}`;
}

function inOrderOf(keys: readonly ConfigKey[], rows: readonly Claimed[]): (Claimed | undefined)[] {
  const found = new Map(rows.map((row) => [configName(row), row]));
  return keys.map((key) => found.get(configName(key)));
}
