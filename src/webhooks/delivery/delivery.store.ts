import { Injectable } from '@nestjs/common';
import { GroupCommit } from '../../platform/database/group-commit.js';
import { textByKey } from '../../platform/database/by-key.js';
import { Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import { preparedName, rowExpressions, type RowChange } from '../../platform/database/row-writer.js';
import { mostCounted, type Waiting } from '../../platform/telemetry/metrics.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import type { SealedConfig } from '../configs/push-config.store.js';
import type { Verdict } from './retry-plan.js';
import { lastingSecrets, type SealedSecret } from '../configs/webhook-secret.store.js';

/** Longer than an attempt can take; a killed process is taken over at once (platform/database/presence.ts). */
const leaseMs = 30_000;

export interface ConfigKey {
  readonly taskId: string;
  readonly configId: string;
}

/** The first pending delivery of a configuration, claimed by this process for one attempt. */
export interface Claimed extends SealedConfig {
  readonly delivery: string;
  readonly config_id: string;
  readonly seq: number;
  /** Key of the owner of the task, with its org. */
  readonly sender: string;
  /** The number of this attempt, from 1. */
  readonly attempts: number;
  /** Attempts before the last restart of the delivery. */
  readonly earlier_attempts: number;
  readonly body: string | null;
  /** True when the process that had claimed it before was lost. */
  readonly taken_over: boolean;
  /** Age of its event. */
  readonly age_seconds: number;
  /** Identifies this claim. */
  readonly lease: string;
  /** Null when the configuration is deleted, like its other columns. */
  readonly state: 'active' | 'failing' | 'disabled' | null;
  /** Why it is disabled. */
  readonly reason: string | null;
  /** Milliseconds since the first failure after the last success. */
  readonly failing_ms: number | null;
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

interface Delivered {
  readonly claimed: Claimed;
  readonly tried: Tried;
  readonly claimNext: boolean;
}

interface DeferredClaim {
  readonly claimed: Claimed;
  readonly inMs: number;
}

const later = (ms: string): string => `now() + ${ms} * interval '1 millisecond'`;
const released = 'lease_owner = null, lease_until = null';
/** Hash of the receiver and the format of a configuration `c`, which callers may replace during an attempt. */
const stampOf = `hashtextextended(row(c.url, c.token, c.authentication, c.format)::text, 0)::text`;
/** The first pending delivery of each given configuration. @param but a condition that excludes deliveries. */
const headOf = (configs: string, but = ''): string => `select h.* from ${configs} cross join lateral (
  select id, task_id, config_id, lease_until is not null as taken_over from webhook_deliveries p
  where p.task_id = ${configs}.task_id and p.config_id = ${configs}.config_id ${but} and p.status = 'pending' order by p.seq limit 1) h`;
/** Key of the owner of a task, by one primary key look-up for each row. The owner of a deleted task is empty. */
const senderOf = `d.org_id || ' ' || coalesce((select t.owner from a2a_tasks t where t.id = d.task_id), '')`;
/** SQL condition: the sender of a delivery is not in the parameter `saturated`. */
const isNotSaturated = (saturated: string): string =>
  `(cardinality(${saturated}::text[]) = 0 or ${senderOf} <> all(${saturated}::text[]))`;
/**
 * Claims the due and free deliveries of `head`. @param owner, trust parameters for `isFree`. @param also a condition.
 */
const claimHead = (
  owner: string,
  trust: string,
  also = '',
): string => `update webhook_deliveries d set attempts = d.attempts + 1, lease_owner = ${owner}, lease_until = ${later(String(leaseMs))}
  from head left join push_configs c on c.task_id = head.task_id and c.id = head.config_id
  where d.id = head.id and ${textByKey('d.status')} = 'pending' and d.next_at <= now() and ${isFree('d', { self: owner, trust })} ${also}
  returning d.id as delivery, ${senderOf} as sender, d.lease_until::text as lease, d.seq, d.attempts, d.earlier_attempts, d.body, d.task_id, d.config_id, d.org_id, head.taken_over,
    extract(epoch from now() - d.created_at)::float8 as age_seconds, c.id, c.url, c.token, c.authentication, c.format, c.state, c.reason, ${stampOf} as stamp,
    extract(epoch from now() - case when c.state = 'failing' then c.failing_since end)::float8 * 1000 as failing_ms, ${lastingSecrets('d.org_id')} as secrets`;
/** A success counts also for a delivery that is dead since its configuration was switched off and on meanwhile. */
const mayEnd = (row: string): string => `${textByKey(`${row}status`)} in ('pending', 'dead')`;

/** Stores deliveries, their claims and their attempts, by the clock of the database. */
@Injectable()
export class DeliveryStore {
  // Calls that arrive during a statement are combined into the next one; configurations share no rows.
  private readonly claims = new GroupCommit((requests: ClaimRequest[]) => this.claimAll(requests), {
    keysOf: ({ key }) => [nameOf(key)],
  });
  private readonly bodies = new GroupCommit((bodies: BodyToStore[]) => this.storeBodies(bodies));
  private readonly ends = new GroupCommit((ended: Delivered[]) => this.endAll(ended), {
    keysOf: ({ claimed }) => [nameOf(keyOf(claimed))],
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
      `with wanted as (select * from unnest($1::uuid[], $2::text[]) as r(task_id, config_id) where r.config_id is not null),
       head as materialized (${headOf('wanted')})
       ${claimHead('$3', '$4', `and ${isNotSaturated('$5')}`)}`,
      [
        keys.map(({ taskId }) => taskId),
        keys.map(({ configId }) => configId),
        this.presence.id,
        this.presence.trust,
        requests.at(-1)!.saturated,
      ],
    );
    return inOrderOf(keys, rows);
  }

  private async storeBodies(bodies: readonly BodyToStore[]): Promise<boolean[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'delivery-body',
      `update webhook_deliveries d set body = r.body from unnest($1::uuid[], $2::integer[], $3::text[]) as r(id, attempts, body)
       where d.id = r.id and r.attempts > 0 and d.attempts = r.attempts and ${textByKey('d.status')} = 'pending' returning d.id`,
      [
        bodies.map(({ claimed }) => claimed.delivery),
        bodies.map(({ claimed }) => claimed.attempts),
        bodies.map(({ body }) => body),
      ],
    );
    const done = new Set(rows.map(({ id }) => id));
    return bodies.map(({ claimed }) => done.has(claimed.delivery));
  }

  private async endAll(ended: readonly Delivered[]): Promise<(Claimed | undefined)[]> {
    const tries = ended.map(({ claimed, tried }) => tryValues(claimed, tried));
    const rows = await this.pg.rows<Claimed>(
      'delivery-done',
      // Other parts of the statement still see an ended delivery as pending, so it is excluded by its id.
      `with r as (select * from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::boolean[])
           as r(id, number, duration_ms, status, error, reply, goes_on) where r.number > 0),
       tried as (insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
         select id, number, duration_ms, status, error, reply from r on conflict do nothing),
       done as (update webhook_deliveries d set status = 'delivered', ${released}, last_status = r.status, last_error = null, ended_at = now()
         from r where d.id = r.id and d.attempts = r.number and ${mayEnd('d.')} returning d.id, d.task_id, d.config_id, r.goes_on),
       head as materialized (${headOf('done', 'and p.id <> done.id')} where done.goes_on)
       ${claimHead('$8', '$9')}`,
      [
        ...tries[0]!.map((_, column) => tries.map((values) => values[column])),
        ended.map(({ claimNext }) => claimNext),
        this.presence.id,
        this.presence.trust,
      ],
    );
    return inOrderOf(
      ended.map(({ claimed }) => keyOf(claimed)),
      rows,
    );
  }

  private async deferAll(deferred: readonly DeferredClaim[]): Promise<(string | undefined)[]> {
    const rows = await this.pg.rows<{ id: string; until: string }>(
      'delivery-put-off',
      `with r as (select * from unnest($1::uuid[], $2::text[], $3::bigint[]) as r(id, lease, ms) where r.ms > 0),
       done as (update webhook_deliveries d set attempts = d.attempts - 1, ${released}, next_at = ${later('r.ms')}
         from r where d.id = r.id and d.lease_until = r.lease::timestamptz and ${textByKey('d.status')} = 'pending'
         returning d.id, d.task_id, d.config_id, d.seq, d.next_at),
       others as (update webhook_deliveries d set next_at = done.next_at from done
         where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq)
       select id, next_at::text as until from done`,
      [
        deferred.map(({ claimed }) => claimed.delivery),
        deferred.map(({ claimed }) => claimed.lease),
        deferred.map(({ inMs }) => Math.max(1, inMs)),
      ],
    );
    const until = new Map(rows.map((row) => [row.id, row.until]));
    return deferred.map(({ claimed }) => until.get(claimed.delivery));
  }

  /**
   * Stores the first success after failures. Deliveries behind it become due, also when only this one was made due
   * early.
   */
  async recovered(claimed: Claimed, tried: Tried, auditRows: readonly RowChange[]): Promise<void> {
    await this.ended(
      'delivery-recovered',
      `done as (update webhook_deliveries set status = 'delivered', ${released}, last_status = $4, last_error = null, ended_at = now()
         where id = $1 and attempts = $2 and ${mayEnd('')} returning task_id, config_id, seq),
       others as (update webhook_deliveries d set next_at = now() from done
         where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq and d.next_at > now()),
       config as (update push_configs c set state = 'active', reason = null, failing_since = null from done
         where c.task_id = done.task_id and c.id = done.config_id and c.state = 'failing' and ${stampOf} is not distinct from $7)`,
      [...tryValues(claimed, tried), claimed.stamp],
      auditRows,
    );
  }

  /**
   * Stores a failure. Deliveries behind a failing one wait as long as it, behind a dead one they are due, and those of
   * a closed configuration become dead. Returns false when the configuration was replaced meanwhile: the failure does
   * not count for the new one, which is posted to at once.
   */
  failed(
    claimed: Claimed,
    tried: Tried,
    verdict: Exclude<Verdict, { kind: 'delivered' }>,
    auditRows: readonly RowChange[],
  ): Promise<boolean> {
    const closed = verdict.kind === 'closed' ? verdict.reason : null;
    const delay = verdict.kind === 'retry' ? verdict.inMs : 0;
    return this.ended(
      'delivery-failed',
      // Locked first, in the same order as a replacement locks it.
      `replaced as materialized (select ${stampOf} is distinct from $10 as is from push_configs c
         where c.task_id = $11 and c.id = $12 for update),
       again as (update webhook_deliveries d set ${released}, last_status = $4, last_error = $5, body = null, next_at = now() from replaced
         where replaced.is and d.id = $1 and d.attempts = $2 and ${textByKey('d.status')} = 'pending' returning d.id),
       done as (update webhook_deliveries set status = $7, ${released}, last_status = $4, last_error = $5,
           next_at = ${later('$8::integer')}, ended_at = case when $7 = 'dead' then now() end
         where id = $1 and attempts = $2 and ${textByKey('status')} = 'pending' and not exists (select from replaced where replaced.is)
         returning task_id, config_id, seq),
       others as (update webhook_deliveries d set status = case when $9::text is null then 'pending' else 'dead' end, next_at = ${later('$8::integer')},
           last_error = coalesce($9, d.last_error), ended_at = case when $9 is not null then now() end
         from done where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq),
       config as (update push_configs c set state = case when $9 is null then 'failing' else 'disabled' end, reason = $9,
           failing_since = coalesce(case when c.state = 'failing' then c.failing_since end, now()) from done
         where c.task_id = done.task_id and c.id = done.config_id and c.state <> 'disabled')`,
      [
        ...tryValues(claimed, tried),
        verdict.kind === 'retry' ? 'pending' : 'dead',
        delay,
        closed,
        claimed.stamp,
        claimed.task_id,
        claimed.config_id,
      ],
      auditRows,
      'not exists (select from again)',
    );
  }

  /**
   * Runs one statement: the attempt, `sql`, and the audit rows unless the claim was lost. Returns the value of
   * `answer`.
   */
  private async ended(
    name: string,
    sql: string,
    values: unknown[],
    auditRows: readonly RowChange[],
    answer = 'true',
  ): Promise<boolean> {
    const select = (rows: string): string => `(case when exists (select from done) then ${rows} else '[]' end)`;
    const more = rowExpressions(auditRows, values.length + 1, { label: 'told', select });
    const [row] = await this.pg.rows<{ answer: boolean }>(
      preparedName([name, ...more.names].join('+')),
      `with tried as (${recordTry}), ${[sql, ...more.expressions].join(', ')} select ${answer} as answer`,
      [...values, ...more.values],
    );
    return row?.answer ?? true;
  }

  /** Skips events without a body, from the claimed one up to the number `until`. */
  skip(claimed: Claimed, until: number): Promise<void> {
    return this.drop(claimed, until, 'skipped', null);
  }

  /** Ends all pending deliveries of a configuration that is deleted or disabled, starting with the claimed one. */
  close(claimed: Claimed, status: 'dead' | 'skipped', reason: string): Promise<void> {
    return this.drop(claimed, 2_147_483_647, status, reason);
  }

  private async drop(
    { delivery, attempts }: Claimed,
    until: number,
    status: string,
    reason: string | null,
  ): Promise<void> {
    await this.pg.rows(
      'delivery-drop',
      `with done as (update webhook_deliveries set status = $4, last_error = coalesce($5, last_error), ${released}, ended_at = now()
         where id = $1 and attempts = $2 and ${textByKey('status')} = 'pending' returning task_id, config_id, seq)
       update webhook_deliveries d set status = $4, last_error = coalesce($5, d.last_error), ended_at = now() from done
       where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq and d.seq <= $3`,
      [delivery, attempts, until, status, reason],
    );
  }

  /** Number of due deliveries without a holder, also behind a failing one, and the age of the oldest. */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'delivery-waits',
      `select count(*)::int as count, coalesce(extract(epoch from now() - min(due.next_at)), 0)::float8 as "lagSeconds"
       from (select d.next_at from webhook_deliveries d where d.status = 'pending' and d.next_at <= now()
         and ${isFree('d', { self: '$1', trust: '$2' })}
         order by d.next_at limit ${mostCounted}) due`,
      [this.presence.id, this.presence.trust],
    );
    return row!;
  }

  /** Makes waiting deliveries of a configuration due now. @param until only those with exactly this due time. */
  async makeDueNow({ taskId, configId }: ConfigKey, until?: string): Promise<void> {
    await this.pg.rows(
      'delivery-hurry',
      `update webhook_deliveries d set next_at = now()
       where d.task_id = $1 and d.config_id = $2 and d.status = 'pending' and d.next_at > now() and ($3::timestamptz is null or d.next_at = $3)`,
      [taskId, configId, until ?? null],
    );
  }

  /** Configurations with a due and free first delivery, longest waiting first, without those of `saturated` senders. */
  async findDue(limit: number, saturated: readonly string[] = []): Promise<DueDelivery[]> {
    return this.pg.rows<DueDelivery>(
      'delivery-due',
      `select d.task_id as "taskId", d.config_id as "configId", d.lease_until is not null as "isOrphan" from webhook_deliveries d
       where d.status = 'pending' and d.next_at <= now() and ${isFree('d', { self: '$2', trust: '$3' })} and not exists (
         select from webhook_deliveries h where h.task_id = d.task_id and h.config_id = d.config_id and h.status = 'pending' and h.seq < d.seq) and ${isNotSaturated('$4')}
       order by d.next_at limit $1`,
      [limit, this.presence.id, this.presence.trust, saturated],
    );
  }
}

const recordTry = `insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
  values ($1, $2, $3, $4, $5, $6) on conflict do nothing`;

function nameOf({ taskId, configId }: ConfigKey): string {
  return `${taskId} ${configId}`;
}

function keyOf({ task_id: taskId, config_id: configId }: Claimed): ConfigKey {
  return { taskId, configId };
}

function inOrderOf(keys: readonly ConfigKey[], rows: readonly Claimed[]): (Claimed | undefined)[] {
  const found = new Map(rows.map((row) => [nameOf(keyOf(row)), row]));
  return keys.map((key) => found.get(nameOf(key)));
}

function tryValues({ delivery, attempts }: Claimed, { durationMs, status, error, reply }: Tried): unknown[] {
  return [delivery, attempts, Math.round(durationMs), status ?? null, error ?? null, reply ?? null];
}
