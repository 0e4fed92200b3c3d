import { Injectable } from '@nestjs/common';
import { GroupCommit } from '../platform/database/group-commit.js';
import { Pg } from '../platform/database/pg.js';
import { isGone, Presence } from '../platform/database/presence.js';
import { mostCounted, type Waiting } from '../platform/telemetry/metrics.js';
import type { PushFormat } from '../protocol/a2a/operations.js';
import type { SealedConfig } from './push-config.store.js';
import type { Verdict } from './retry-plan.js';
import { lastingSecrets, type SealedSecret } from './webhook-secret.store.js';

/** Longer than a try can take; a killed process is taken over at once (platform/database/presence.ts). */
const leaseMs = 30_000;

export interface ConfigKey {
  readonly taskId: string;
  readonly configId: string;
}

/** The first of the pending deliveries of a configuration, claimed by this process for one try. */
export interface Claimed extends SealedConfig {
  readonly delivery: string;
  readonly seq: number;
  /** The number of this try, from 1. */
  readonly attempts: number;
  /** Of these, what was over when it was to be delivered anew. */
  readonly earlier_attempts: number;
  readonly body: string | null;
  /** Whoever had it before was lost. */
  readonly taken_over: boolean;
  /** Since its event. */
  readonly age_seconds: number;
  /** Null, like its other columns, when the configuration is deleted. */
  readonly state: 'active' | 'failing' | 'disabled' | null;
  readonly format: PushFormat;
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

interface Delivered {
  readonly claimed: Claimed;
  readonly tried: Tried;
}

const isFree = `(d.lease_until is null or d.lease_until < now() or ${isGone('d.lease_owner')})`;
const later = (ms: string): string => `now() + ${ms} * interval '1 millisecond'`;
const letGo = 'lease_owner = null, lease_until = null';

/** Deliveries: who is due, who works on which, and how tries ended. By the clock of the database. */
@Injectable()
export class DeliveryStore {
  // What waits while a statement is under way goes out together; configurations share no rows.
  private readonly claims = new GroupCommit((keys: ConfigKey[]) => this.claimAll(keys), { keyOf: nameOf });
  private readonly bodies = new GroupCommit((kept: Kept[]) => this.keepAll(kept));
  private readonly ends = new GroupCommit((ended: Delivered[]) => this.endAll(ended));

  constructor(
    private readonly pg: Pg,
    private readonly presence: Presence,
  ) {}

  /** Undefined when nothing of the configuration is due or somebody else is at it: never two at once, never out of order. */
  claim(key: ConfigKey): Promise<Claimed | undefined> {
    return this.claims.commit(key);
  }

  /** Keeps the body for this try and all later ones. False when the claim is lost. */
  keepBody(claimed: Claimed, body: string): Promise<boolean> {
    return this.bodies.commit({ claimed, body });
  }

  async delivered(claimed: Claimed, tried: Tried): Promise<void> {
    await this.ends.commit({ claimed, tried });
  }

  // The conditions on what is wanted, kept and done say nothing new; they keep the planner from expecting many rows and reading tables as a whole.
  private async claimAll(keys: readonly ConfigKey[]): Promise<(Claimed | undefined)[]> {
    const rows = await this.pg.rows<Claimed & { config_id: string }>(
      'delivery-claim',
      `with wanted as (select * from unnest($1::uuid[], $2::text[]) as r(task_id, config_id) where r.config_id is not null),
       head as materialized (select h.* from wanted w cross join lateral (
         select id, task_id, config_id, lease_until is not null as taken_over from webhook_deliveries p
         where p.task_id = w.task_id and p.config_id = w.config_id and p.status = 'pending' order by p.seq limit 1) h)
       update webhook_deliveries d set attempts = d.attempts + 1, lease_owner = $3, lease_until = ${later(String(leaseMs))}
       from head left join push_configs c on c.task_id = head.task_id and c.id = head.config_id
       where d.id = head.id and d.status = 'pending' and d.next_at <= now() and ${isFree}
       returning d.id as delivery, d.seq, d.attempts, d.earlier_attempts, d.body, d.task_id, d.config_id, d.org_id, head.taken_over,
         extract(epoch from now() - d.created_at)::float8 as age_seconds, c.id, c.url, c.token, c.authentication, c.format, c.state,
         ${lastingSecrets('d.org_id')} as secrets`,
      [keys.map(({ taskId }) => taskId), keys.map(({ configId }) => configId), this.presence.id],
    );
    const found = new Map(rows.map((row) => [nameOf({ taskId: row.task_id, configId: row.config_id }), row]));
    return keys.map((key) => found.get(nameOf(key)));
  }

  private async keepAll(kept: readonly Kept[]): Promise<boolean[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'delivery-body',
      `update webhook_deliveries d set body = r.body from unnest($1::uuid[], $2::integer[], $3::text[]) as r(id, attempts, body)
       where d.id = r.id and r.attempts > 0 and d.attempts = r.attempts and d.status = 'pending' returning d.id`,
      [
        kept.map(({ claimed }) => claimed.delivery),
        kept.map(({ claimed }) => claimed.attempts),
        kept.map(({ body }) => body),
      ],
    );
    const done = new Set(rows.map(({ id }) => id));
    return kept.map(({ claimed }) => done.has(claimed.delivery));
  }

  private async endAll(ended: readonly Delivered[]): Promise<void[]> {
    const column = (index: number): unknown[] => ended.map((each) => tryValues(each.claimed, each.tried)[index]);
    await this.pg.rows(
      'delivery-done',
      `with r as (select * from unnest($1::uuid[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[])
           as r(id, number, duration_ms, status, error, reply) where r.number > 0),
       tried as (insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
         select id, number, duration_ms, status, error, reply from r on conflict do nothing),
       done as (update webhook_deliveries d set status = 'delivered', ${letGo}, last_status = r.status, last_error = null, ended_at = now()
         from r where d.id = r.id and d.attempts = r.number and d.status = 'pending' returning d.task_id, d.config_id)
       update push_configs c set state = 'active', reason = null from done
       where c.task_id = done.task_id and c.id = done.config_id and c.state = 'failing'`,
      [0, 1, 2, 3, 4, 5].map(column),
    );
    return ended.map(() => undefined);
  }

  /** What waits behind a failing delivery waits as long; behind a dead one it is due; of a closed configuration it is skipped. */
  async failed(claimed: Claimed, tried: Tried, verdict: Exclude<Verdict, { kind: 'delivered' }>): Promise<void> {
    const isClosed = verdict.kind === 'closed';
    const delay = verdict.kind === 'retry' ? verdict.inMs : 0;
    await this.pg.rows(
      'delivery-failed',
      `with tried as (${recordTry}),
       done as (update webhook_deliveries set status = $7, ${letGo}, last_status = $4, last_error = $5,
           next_at = ${later('$8::integer')}, ended_at = case when $7 = 'dead' then now() end
         where id = $1 and attempts = $2 and status = 'pending' returning task_id, config_id, seq),
       others as (update webhook_deliveries d set status = case when $9 then 'skipped' else 'pending' end, next_at = ${later('$8::integer')},
           last_error = case when $9 then $10 else d.last_error end, ended_at = case when $9 then now() end
         from done where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq)
       update push_configs c set state = case when $9 then 'disabled' else 'failing' end, reason = $10 from done
       where c.task_id = done.task_id and c.id = done.config_id and c.state <> 'disabled'`,
      [
        ...tryValues(claimed, tried),
        verdict.kind === 'retry' ? 'pending' : 'dead',
        delay,
        isClosed,
        isClosed ? verdict.reason : null,
      ],
    );
  }

  /** Events up to and with a number that are not posted, the claimed one first. */
  async skip({ delivery, attempts }: Claimed, until: number): Promise<void> {
    await this.pg.rows(
      'delivery-skip',
      `with done as (update webhook_deliveries set status = 'skipped', ${letGo}, ended_at = now()
         where id = $1 and attempts = $2 and status = 'pending' returning task_id, config_id, seq)
       update webhook_deliveries d set status = 'skipped', ended_at = now() from done
       where d.task_id = done.task_id and d.config_id = done.config_id and d.status = 'pending' and d.seq > done.seq and d.seq <= $3`,
      [delivery, attempts, until],
    );
  }

  /** What is due and held by nobody, for how long; of a configuration that fails what stands behind is due as well. */
  async waiting(): Promise<Waiting> {
    const [row] = await this.pg.rows<Waiting>(
      'delivery-waits',
      `select count(*)::int as count, coalesce(extract(epoch from now() - min(due.next_at)), 0)::float8 as "lagSeconds"
       from (select d.next_at from webhook_deliveries d where d.status = 'pending' and d.next_at <= now() and ${isFree}
         order by d.next_at limit ${mostCounted}) due`,
    );
    return row!;
  }

  /** What waits for its next try is due now. */
  async hurry({ taskId, configId }: ConfigKey): Promise<void> {
    await this.pg.rows(
      'delivery-hurry',
      `update webhook_deliveries d set next_at = now()
       where d.task_id = $1 and d.config_id = $2 and d.status = 'pending' and d.next_at > now()`,
      [taskId, configId],
    );
  }

  /** Configurations with something due that nobody works on, the longest waiting first. */
  async findDue(limit: number): Promise<ConfigKey[]> {
    return this.pg.rows<{ taskId: string; configId: string }>(
      'delivery-due',
      `select d.task_id as "taskId", d.config_id as "configId" from webhook_deliveries d
       where d.status = 'pending' and d.next_at <= now() and ${isFree} and not exists (
         select from webhook_deliveries h where h.task_id = d.task_id and h.config_id = d.config_id and h.status = 'pending' and h.seq < d.seq)
       order by d.next_at limit $1`,
      [limit],
    );
  }
}

const recordTry = `insert into webhook_attempts (delivery_id, number, duration_ms, status, error, reply)
  values ($1, $2, $3, $4, $5, $6) on conflict do nothing`;

function nameOf({ taskId, configId }: ConfigKey): string {
  return `${taskId} ${configId}`;
}

function tryValues({ delivery, attempts }: Claimed, { durationMs, status, error, reply }: Tried): unknown[] {
  return [delivery, attempts, Math.round(durationMs), status ?? null, error ?? null, reply ?? null];
}
