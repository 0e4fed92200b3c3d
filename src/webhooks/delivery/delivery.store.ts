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

/** Longer than a try can take; a killed process is taken over at once (platform/database/presence.ts). */
const leaseMs = 30_000;

export interface ConfigKey {
  readonly taskId: string;
  readonly configId: string;
}

/** The first of the pending deliveries of a configuration, claimed by this process for one try. */
export interface Claimed extends SealedConfig {
  readonly delivery: string;
  readonly config_id: string;
  readonly seq: number;
  /** Names the owner of the task, and its org. */
  readonly sender: string;
  /** The number of this try, from 1. */
  readonly attempts: number;
  /** Of these, what was over when it was to be delivered anew. */
  readonly earlier_attempts: number;
  readonly body: string | null;
  /** Whoever had it before was lost. */
  readonly taken_over: boolean;
  /** Since its event. */
  readonly age_seconds: number;
  /** Tells this claim from any other. */
  readonly lease: string;
  /** Null, like its other columns, when the configuration is deleted. */
  readonly state: 'active' | 'failing' | 'disabled' | null;
  /** Why it is disabled. */
  readonly reason: string | null;
  /** Since the first failure with no success since. */
  readonly failing_ms: number | null;
  readonly format: PushFormat;
  /** Changes when the configuration is replaced. */
  readonly stamp: string | null;
  /** What the org signs with now, the newest first. */
  readonly secrets: readonly SealedSecret[];
}

/** One try as it is remembered. */
export interface Tried {
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
  readonly reply?: string;
}

interface Kept {
  readonly claimed: Claimed;
  readonly body: string;
}

/** A configuration whose first delivery is due. */
export interface DueDelivery extends ConfigKey {
  /** Whoever had it is lost. */
  readonly isOrphan: boolean;
}

interface Wish {
  readonly key: ConfigKey;
  readonly saturated: readonly string[];
}

interface Delivered {
  readonly claimed: Claimed;
  readonly tried: Tried;
  readonly goesOn: boolean;
}

interface PutBack {
  readonly claimed: Claimed;
  readonly inMs: number;
}

const later = (ms: string): string => `now() + ${ms} * interval '1 millisecond'`;
const released = 'lease_owner = null, lease_until = null';
/** Of a configuration `c`: where its webhooks go and how. Callers replace one while a try is under way. */
const stampOf = `hashtextextended(row(c.url, c.token, c.authentication, c.format)::text, 0)::text`;
/** The first that is pending of each configuration that is named. @param but which it is not. */
const headOf = (configs: string, but = ''): string => `select h.* from ${configs} cross join lateral (
  select id, task_id, config_id, lease_until is not null as taken_over from webhook_deliveries p
  where p.task_id = ${configs}.task_id and p.config_id = ${configs}.config_id ${but} and p.status = 'pending' order by p.seq limit 1) h`;
/** Names the owner of a task: one look into the key of tasks for a row that is read. What has lost its task is of nobody. */
const senderOf = `d.org_id || ' ' || coalesce((select t.owner from a2a_tasks t where t.id = d.task_id), '')`;
/** The condition that the sender of a delivery does not have to wait. @param saturated the parameter with those who have. */
const isOfOthers = (saturated: string): string =>
  `(cardinality(${saturated}::text[]) = 0 or ${senderOf} <> all(${saturated}::text[]))`;
/** Claims what `head` names, where it is due and nobody has it. @param owner the parameter with the number of this process. @param trust with what it may conclude. @param also another condition. */
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
/** What was taken was taken, though somebody gave it up meanwhile by switching its configuration off and on. */
const mayEnd = (row: string): string => `${textByKey(`${row}status`)} in ('pending', 'dead')`;

/** Deliveries: who is due, who works on which, and how tries ended. By the clock of the database. */
@Injectable()
export class DeliveryStore {
  // What waits while a statement is under way goes out together; configurations share no rows.
  private readonly claims = new GroupCommit((wishes: Wish[]) => this.claimAll(wishes), {
    keysOf: ({ key }) => [nameOf(key)],
  });
  private readonly bodies = new GroupCommit((kept: Kept[]) => this.keepAll(kept));
  private readonly ends = new GroupCommit((ended: Delivered[]) => this.endAll(ended), {
    keysOf: ({ claimed }) => [nameOf(keyOf(claimed))],
  });
  private readonly putBacks = new GroupCommit((back: PutBack[]) => this.putBackAll(back));

  constructor(
    private readonly pg: Pg,
    private readonly presence: Presence,
  ) {}

  /**
   * Undefined when nothing of the configuration is due, somebody else is at it, or its sender has to wait: never two at once, never out of
   * order. @param saturated the senders that have to wait.
   */
  claim(key: ConfigKey, saturated: readonly string[] = []): Promise<Claimed | undefined> {
    return this.claims.commit({ key, saturated });
  }

  /** Keeps the body for this try and all later ones. False when the claim is lost. */
  keepBody(claimed: Claimed, body: string): Promise<boolean> {
    return this.bodies.commit({ claimed, body });
  }

  /** The end of a try that went well; in the same breath the next of its configuration is claimed, if that is wanted and one is due. */
  delivered(claimed: Claimed, tried: Tried, goesOn = false): Promise<Claimed | undefined> {
    return this.ends.commit({ claimed, tried, goesOn });
  }

  /**
   * Gives a claim back: its try does not count, and it is due later, with what stands behind it. Answers until when, as the database says
   * it; undefined when the claim is lost.
   */
  defer(claimed: Claimed, inMs: number): Promise<string | undefined> {
    return this.putBacks.commit({ claimed, inMs });
  }

  // The conditions on what is wanted, kept and done say nothing new; they keep the planner from expecting many rows and reading tables as a whole.
  private async claimAll(wishes: readonly Wish[]): Promise<(Claimed | undefined)[]> {
    const keys = wishes.map(({ key }) => key);
    const rows = await this.pg.rows<Claimed>(
      'delivery-claim',
      `with wanted as (select * from unnest($1::uuid[], $2::text[]) as r(task_id, config_id) where r.config_id is not null),
       head as materialized (${headOf('wanted')})
       ${claimHead('$3', '$4', `and ${isOfOthers('$5')}`)}`,
      [
        keys.map(({ taskId }) => taskId),
        keys.map(({ configId }) => configId),
        this.presence.id,
        this.presence.trust,
        wishes.at(-1)!.saturated,
      ],
    );
    return inOrderOf(keys, rows);
  }

  private async keepAll(kept: readonly Kept[]): Promise<boolean[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'delivery-body',
      `update webhook_deliveries d set body = r.body from unnest($1::uuid[], $2::integer[], $3::text[]) as r(id, attempts, body)
       where d.id = r.id and r.attempts > 0 and d.attempts = r.attempts and ${textByKey('d.status')} = 'pending' returning d.id`,
      [
        kept.map(({ claimed }) => claimed.delivery),
        kept.map(({ claimed }) => claimed.attempts),
        kept.map(({ body }) => body),
      ],
    );
    const done = new Set(rows.map(({ id }) => id));
    return kept.map(({ claimed }) => done.has(claimed.delivery));
  }

  private async endAll(ended: readonly Delivered[]): Promise<(Claimed | undefined)[]> {
    const tries = ended.map(({ claimed, tried }) => tryValues(claimed, tried));
    const rows = await this.pg.rows<Claimed>(
      'delivery-done',
      // What is ended here is pending still for whoever looks from within the statement.
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
        ended.map(({ goesOn }) => goesOn),
        this.presence.id,
        this.presence.trust,
      ],
    );
    return inOrderOf(
      ended.map(({ claimed }) => keyOf(claimed)),
      rows,
    );
  }

  private async putBackAll(back: readonly PutBack[]): Promise<(string | undefined)[]> {
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
        back.map(({ claimed }) => claimed.delivery),
        back.map(({ claimed }) => claimed.lease),
        back.map(({ inMs }) => Math.max(1, inMs)),
      ],
    );
    const until = new Map(rows.map((row) => [row.id, row.until]));
    return back.map(({ claimed }) => until.get(claimed.delivery));
  }

  /** The first that was delivered since the configuration failed; what waits behind it is due, though it was hurried. @param told what is remembered with it. */
  async recovered(claimed: Claimed, tried: Tried, told: readonly RowChange[]): Promise<void> {
    await this.ended(
      'delivery-recovered',
      `done as (update webhook_deliveries set status = 'delivered', ${released}, last_status = $4, last_error = null, ended_at = now()
         where id = $1 and attempts = $2 and ${mayEnd('')} returning task_id, config_id, seq),
       others as (update webhook_deliveries d set next_at = now() from done
         where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq and d.next_at > now()),
       config as (update push_configs c set state = 'active', reason = null, failing_since = null from done
         where c.task_id = done.task_id and c.id = done.config_id and c.state = 'failing' and ${stampOf} is not distinct from $7)`,
      [...tryValues(claimed, tried), claimed.stamp],
      told,
    );
  }

  /**
   * What waits behind a failing delivery waits as long, behind a dead one it is due, of a closed configuration it is given up too. False
   * when the configuration was replaced meanwhile: nothing is held against the new one, and it is posted to at once.
   */
  failed(
    claimed: Claimed,
    tried: Tried,
    verdict: Exclude<Verdict, { kind: 'delivered' }>,
    told: readonly RowChange[],
  ): Promise<boolean> {
    const closed = verdict.kind === 'closed' ? verdict.reason : null;
    const delay = verdict.kind === 'retry' ? verdict.inMs : 0;
    return this.ended(
      'delivery-failed',
      // Locked first, as whoever replaces it does.
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
      told,
      'not exists (select from again)',
    );
  }

  /** Answers what is asked. One statement: the try, what `done` and what follows it do, and what is told of it when the claim was not lost. */
  private async ended(
    name: string,
    sql: string,
    values: unknown[],
    told: readonly RowChange[],
    answer = 'true',
  ): Promise<boolean> {
    const select = (rows: string): string => `(case when exists (select from done) then ${rows} else '[]' end)`;
    const more = rowExpressions(told, values.length + 1, { label: 'told', select });
    const [row] = await this.pg.rows<{ answer: boolean }>(
      preparedName([name, ...more.names].join('+')),
      `with tried as (${recordTry}), ${[sql, ...more.expressions].join(', ')} select ${answer} as answer`,
      [...values, ...more.values],
    );
    return row?.answer ?? true;
  }

  /** Events up to and with a number that are not posted, the claimed one first. */
  skip(claimed: Claimed, until: number): Promise<void> {
    return this.drop(claimed, until, 'skipped', null);
  }

  /** Everything that is pending of a configuration that takes nothing, the claimed one first. */
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

  /** What is due and held by nobody, for how long; of a configuration that fails what stands behind is due as well. */
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

  /** What waits for its next try is due now. @param until only what waits until this moment. */
  async makeDueNow({ taskId, configId }: ConfigKey, until?: string): Promise<void> {
    await this.pg.rows(
      'delivery-hurry',
      `update webhook_deliveries d set next_at = now()
       where d.task_id = $1 and d.config_id = $2 and d.status = 'pending' and d.next_at > now() and ($3::timestamptz is null or d.next_at = $3)`,
      [taskId, configId, until ?? null],
    );
  }

  /** Configurations with something due that nobody works on, the longest waiting first. @param saturated senders that have to wait. */
  async findDue(limit: number, saturated: readonly string[] = []): Promise<DueDelivery[]> {
    return this.pg.rows<DueDelivery>(
      'delivery-due',
      `select d.task_id as "taskId", d.config_id as "configId", d.lease_until is not null as "isOrphan" from webhook_deliveries d
       where d.status = 'pending' and d.next_at <= now() and ${isFree('d', { self: '$2', trust: '$3' })} and not exists (
         select from webhook_deliveries h where h.task_id = d.task_id and h.config_id = d.config_id and h.status = 'pending' and h.seq < d.seq) and ${isOfOthers('$4')}
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

/** What was claimed of each configuration. */
function inOrderOf(keys: readonly ConfigKey[], rows: readonly Claimed[]): (Claimed | undefined)[] {
  const found = new Map(rows.map((row) => [nameOf(keyOf(row)), row]));
  return keys.map((key) => found.get(nameOf(key)));
}

function tryValues({ delivery, attempts }: Claimed, { durationMs, status, error, reply }: Tried): unknown[] {
  return [delivery, attempts, Math.round(durationMs), status ?? null, error ?? null, reply ?? null];
}
