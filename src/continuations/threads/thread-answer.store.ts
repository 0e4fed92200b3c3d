import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Thread } from '../../a2a-client/dispatch.types.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import { noTimeByKey } from '../../platform/database/by-key.js';
import { isUniqueViolation, Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import { later, type SqlParams } from '../../platform/database/sql.js';
import { UrlQueries } from '../../platform/secrets/url-queries.js';
import { Vault } from '../../platform/secrets/vault.js';
import type { Receipt } from './thread-plan.js';

/** Lease of a sender, in milliseconds; longer than a post and the writes around it take. */
const leaseMs = 30_000;

/** Answer that this process has claimed and sends. */
export interface ClaimedAnswer {
  readonly id: string;
  readonly orgId: string;
  readonly taskId: string;
  readonly url: string;
  readonly threadId: string;
  readonly token: string | null;
  readonly payload: JsonObject | null;
  readonly ownsProgress: boolean;
  readonly attempts: number;
  readonly receipt: JsonObject | null;
  readonly leaseEpoch: number;
}

export interface DueAnswer {
  readonly id: string;
  /** Origin of the receiver: scheme, host and port. */
  readonly origin: string;
}

const holdStatement: RowStatement = {
  name: 'thread-hold',
  sql: (rows) => `
    insert into thread_answers (id, org_id, task_id, url, thread_id, thread_key, token)
    select id, org_id, task_id, url, thread_id, thread_key, token
    from jsonb_to_recordset(${rows}) as r(
      id uuid, org_id uuid, task_id uuid, url text, thread_id text, thread_key text, token text)`,
};

const releaseStatement: RowStatement = {
  name: 'thread-let-go',
  sql: (rows) => `
    update thread_answers a
    set status = r.status, next_at = now(), token = case when r.status = 'waiting' then a.token end,
      ended_at = case when r.status = 'waiting' then null else now() end
    from jsonb_to_recordset(${rows}) as r(task_id uuid, status text)
    where a.task_id = r.task_id and a.status = 'held'`,
};

const origin = `substring(a.url from '^[^:]+://[^/?#]+')`;
const hasOwner = `exists (
    select
    from thread_answers o
    where o.org_id = a.org_id and o.thread_key = a.thread_key and o.owns_progress
  )`;
/**
 * SQL condition for due answers. When the task, or the wait of its caller, has ended, no pause applies. Progress
 * of a task is sent only by the owner of the progress message of the thread.
 */
const mayBeDue = `${isFree('a', { self: ':self', trust: ':trust' })} and case
    when a.status in ('delivering', 'received') then a.next_at <= now()
    when t.id is null or t.status_state not in ('submitted', 'working') then true
    when a.status <> 'waiting' or a.next_at > now() then false
    when a.owns_progress then t.seq > a.seq
    else not ${hasOwner}
  end`;
const withTasks = `thread_answers a
  left join a2a_tasks t on t.id = a.task_id`;
const isClaimed = `id = :id and lease_epoch = :epoch and ${noTimeByKey('ended_at')}`;
const released = 'lease_owner = null, lease_until = null';
const ended = `token = null, payload = null, owns_progress = false, ended_at = now(), ${released}`;

/**
 * Row change for the end of the caller's wait, for the commit that ends it.
 *
 * @param to `answered` when the caller got the answer itself.
 */
export function endingWait(taskId: string, to: 'waiting' | 'answered'): RowChange {
  return { statement: releaseStatement, row: { task_id: taskId, status: to } };
}

/**
 * Stores answers to conversation threads. A claim takes a lease and an epoch; every later write must carry the epoch.
 */
@Injectable()
export class ThreadAnswerStore {
  private readonly queries: UrlQueries;

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
    private readonly presence: Presence,
  ) {
    this.queries = new UrlQueries(vault);
  }

  /**
   * Row of a new answer, for the commit of its task. Encrypts the token, together with the query of the URL where it
   * has one.
   */
  holding(org: string, taskId: string, thread: Thread): RowChange {
    const id = newId();
    const { id: threadId, token } = thread;
    const { url, query } = this.queries.hide(thread.url);
    const secret = query === undefined ? token : JSON.stringify({ query, token });
    const row = {
      id,
      org_id: org,
      task_id: taskId,
      url,
      thread_id: threadId,
      thread_key: createHash('sha256').update(`${thread.url}\n${threadId}`).digest('base64url'),
      token: secret === undefined ? null : this.vault.seal(secret, { table: 'thread_answers', row: id, org }),
    };
    return { statement: holdStatement, row };
  }

  /** URL and token to send an answer with. Throws the errors of the vault. */
  openAddress({ id, orgId: org, url, token }: ClaimedAnswer): { readonly url: string; readonly token?: string } {
    if (token === null) return { url };
    const secret = this.vault.open(token, { table: 'thread_answers', row: id, org }).reveal();
    if (!UrlQueries.isHidden(url)) return { url, token: secret };
    const { query, token: bearer } = JSON.parse(secret) as { query: string; token?: string };
    return { url: UrlQueries.whole({ url, query }), token: bearer };
  }

  /**
   * Due answers, the oldest first.
   *
   * @param but origins that get no more posts now.
   */
  findDue(limit: number, but: readonly string[] = []): Promise<DueAnswer[]> {
    return this.pg.rows<DueAnswer>(
      'thread-due',
      `
      select a.id, ${origin} as origin
      from ${withTasks}
      where a.ended_at is null and ${mayBeDue} and ${origin} <> all(:but::text[])
      order by a.next_at
      limit :limit`,
      { limit, but, self: this.presence.id, trust: this.presence.trust },
    );
  }

  /** Claims a due answer that no process has claimed; undefined when there is none. */
  async claim(id: string): Promise<ClaimedAnswer | undefined> {
    const [row] = await this.pg.rows<ClaimedAnswer>(
      'thread-claim',
      `
      update thread_answers c
      set lease_owner = :self, lease_until = ${later(leaseMs)}, lease_epoch = c.lease_epoch + 1
      from (
        select a.id
        from ${withTasks}
        where a.id = :id and ${noTimeByKey('a.ended_at')} and ${mayBeDue}
        for update of a skip locked
      ) due
      where c.id = due.id
      returning c.id, c.org_id as "orgId", c.task_id as "taskId", c.url, c.thread_id as "threadId", c.token, c.payload,
        c.owns_progress as "ownsProgress", c.attempts, c.receipt, c.lease_epoch as "leaseEpoch"`,
      { id, self: this.presence.id, trust: this.presence.trust },
    );
    return row;
  }

  /** Makes the answer the owner of the progress message of its thread. False when another answer owns it. */
  async ownProgress({ id, leaseEpoch: epoch }: ClaimedAnswer): Promise<boolean> {
    const set = this.pg.rows(
      'thread-own',
      `
      update thread_answers a
      set owns_progress = true
      where a.id = :id and a.lease_epoch = :epoch and a.status = 'waiting' and not ${hasOwner}
      returning a.id`,
      { id, epoch },
    );
    const rows = await set.catch((error: unknown) => {
      if (isUniqueViolation(error, 'uq_thread_answers_progress')) return [];
      throw error;
    });
    return rows.length > 0;
  }

  /** Stores that the thread knows the task up to this event; the next update follows `pauseMs` later or more. */
  recordProgress({ id, leaseEpoch: epoch }: ClaimedAnswer, seq: number, pauseMs: number): Promise<boolean> {
    return this.change(
      'thread-told',
      `
      update thread_answers
      set seq = :seq, next_at = ${later(':pauseMs')}, ${released}
      where ${isClaimed}
      returning id`,
      { id, epoch, seq, pauseMs },
    );
  }

  /**
   * Stores the body before the first byte is sent; each attempt sends the same body. False when another process has
   * claimed the answer since.
   */
  beginDelivery({ id, leaseEpoch: epoch }: ClaimedAnswer, payload: JsonObject): Promise<boolean> {
    return this.change(
      'thread-deliver',
      `
      update thread_answers
      set status = 'delivering', payload = coalesce(payload, :payload), attempts = attempts + 1, owns_progress = false
      where ${isClaimed}
      returning id`,
      { id, epoch, payload: JSON.stringify(payload) },
    );
  }

  /** Stores the receipt; the answer is never sent again. */
  keepReceipt({ id, leaseEpoch: epoch }: ClaimedAnswer, receipt: Receipt): Promise<boolean> {
    return this.change(
      'thread-receipt',
      `
      update thread_answers
      set status = 'received', receipt = :receipt
      where ${isClaimed}
      returning id`,
      { id, epoch, receipt: JSON.stringify(receipt) },
    );
  }

  /** Ends an answer with a receipt. */
  finish({ id, leaseEpoch: epoch }: ClaimedAnswer): Promise<boolean> {
    return this.change(
      'thread-finish',
      `
      update thread_answers
      set status = 'delivered', ${ended}
      where ${isClaimed} and receipt is not null
      returning id`,
      { id, epoch },
    );
  }

  defer({ id, leaseEpoch: epoch }: ClaimedAnswer, inMs: number, lastError: string): Promise<boolean> {
    return this.change(
      'thread-put-off',
      `
      update thread_answers
      set next_at = ${later(':inMs')}, last_error = :lastError, ${released}
      where ${isClaimed}
      returning id`,
      { id, epoch, inMs, lastError },
    );
  }

  /** Ends an answer that is given up. */
  bury({ id, leaseEpoch: epoch }: ClaimedAnswer, reason: string): Promise<boolean> {
    return this.change(
      'thread-bury',
      `
      update thread_answers
      set status = 'dead', last_error = :reason, ${ended}
      where ${isClaimed}
      returning id`,
      { id, epoch, reason },
    );
  }

  /** Deletes ended answers; returns how many. */
  async dropEnded(days: number, limit: number): Promise<number> {
    const rows = await this.pg.rows(
      'thread-retention',
      `
      delete from thread_answers
      where id in (
        select id
        from thread_answers
        where ended_at < now() - make_interval(days => :days::int)
        order by ended_at
        limit :limit
      )
      returning id`,
      { days, limit },
    );
    return rows.length;
  }

  /** Runs an update of one answer. False when it changed nothing, because another process has claimed the answer. */
  private async change(name: string, update: string, params: SqlParams): Promise<boolean> {
    return (await this.pg.rows(name, update, params)).length > 0;
  }
}
