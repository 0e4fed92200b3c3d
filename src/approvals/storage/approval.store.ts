import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import type { ApprovalEntity, ApprovalState } from './approval.entity.js';

/** The reader of a list: it sees its own questions and those for its groups. */
export interface Reader {
  readonly caller: string;
  /** Undefined: everything in the org. */
  readonly groups?: readonly string[];
}

const columns = `
  id, org_id as "orgId", digest, caller, verb, action, resource, sealed, policies, groups,
  case when state in ('pending', 'approved', 'denied') and expires_at <= now() then 'expired' else state end as state,
  lifetime_seconds as "lifetimeSeconds", requested_at as "requestedAt", expires_at as "expiresAt",
  decided_at as "decidedAt", decided_by as "decidedBy", reason,
  uses_left as "usesLeft", used_at as "usedAt", used_by as "usedBy"`;

/** Condition for approvals that an attempt with one of the keys used within the last day. */
const isUsedFor = (table: string): string =>
  `(${table}.used_for @> :keys::jsonb and ${table}.used_at > now() - interval '1 day')`;

/** Reads and changes approvals. Each change is one statement on one row, so that of two at once one wins. */
@Injectable()
export class ApprovalStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Uses the approval of an act and returns it. Returns undefined when no approval is left. All attempts with the same
   * key use it once together, also when two run at once.
   */
  async use(orgId: string, digest: string, act: string, key?: string): Promise<ApprovalEntity | undefined> {
    const keys = JSON.stringify(key === undefined ? [] : [key]);
    const [row] = await this.pg.rows<ApprovalEntity>(
      'approval-use',
      `
      update approvals
      set uses_left = uses_left - 1,
        state = case when uses_left = 1 then 'used' else state end,
        used_at = now(),
        used_by = :act,
        used_for = used_for || :keys::jsonb
      where org_id = :orgId and digest = :digest and state = 'approved' and expires_at > now()
        and (:keys::jsonb = '[]' or not exists (
          select from approvals other
          where other.org_id = :orgId and other.digest = :digest and ${isUsedFor('other')}
        ))
        and (:keys::jsonb = '[]' or not ${isUsedFor('approvals')})
      returning ${columns}`,
      { orgId, digest, act, keys },
    );
    return row ?? (key === undefined ? undefined : this.findUsed(orgId, digest, keys));
  }

  /** Returns the approval that an earlier attempt used. */
  private async findUsed(orgId: string, digest: string, keys: string): Promise<ApprovalEntity | undefined> {
    const [row] = await this.pg.rows<ApprovalEntity>(
      'approval-used',
      `
      select ${columns}
      from approvals
      where org_id = :orgId and digest = :digest and ${isUsedFor('approvals')}
      order by id
      limit 1`,
      { orgId, digest, keys },
    );
    return row;
  }

  /** Returns whether an act with this digest just used an approval, so that its result may not be stored yet. */
  async isJustUsed(orgId: string, digest: string): Promise<boolean> {
    const rows = await this.pg.rows(
      'approval-just-used',
      `
      select
      from approvals
      where org_id = :orgId and digest = :digest and used_at > now() - interval '3 seconds'`,
      { orgId, digest },
    );
    return rows.length > 0;
  }

  /** Returns the open row of a digest. Closes one that expired. */
  async findOpen(tx: Tx, orgId: string, digest: string): Promise<ApprovalEntity | undefined> {
    await queryIn(
      tx,
      `
      update approvals
      set state = 'expired'
      where org_id = :orgId and digest = :digest and state in ('pending', 'approved', 'denied')
        and expires_at <= now()`,
      { orgId, digest },
    );
    const [row] = await queryIn<ApprovalEntity[]>(
      tx,
      `
      select ${columns}
      from approvals
      where org_id = :orgId and digest = :digest and state in ('pending', 'approved', 'denied')`,
      { orgId, digest },
    );
    return row;
  }

  /**
   * Returns how many questions of a caller wait for an answer. Other questions of the caller wait until the transaction
   * ends, so that the count is exact.
   */
  async countWaiting(tx: Tx, orgId: string, caller: string): Promise<number> {
    const lock = `approvals:${orgId}:${caller}`;
    await queryIn(tx, 'select pg_advisory_xact_lock(hashtextextended(:lock, 0))', { lock });
    const [row] = await queryIn<{ count: number }[]>(
      tx,
      `
      select count(*)::integer as count
      from approvals
      where org_id = :orgId and caller = :caller and state = 'pending' and expires_at > now()`,
      { orgId, caller },
    );
    return row!.count;
  }

  /** Adds a question, unless another request added the same one. */
  async insert(
    tx: Tx,
    given: Pick<
      ApprovalEntity,
      'id' | 'orgId' | 'digest' | 'caller' | 'verb' | 'action' | 'resource' | 'sealed' | 'lifetimeSeconds'
    > & { readonly policies: readonly string[]; readonly groups: readonly string[] },
  ): Promise<void> {
    await queryIn(
      tx,
      `
      insert into approvals
        (id, org_id, digest, caller, verb, action, resource, sealed, policies, groups, lifetime_seconds, expires_at)
      values
        (:id, :orgId, :digest, :caller, :verb, :action, :resource, :sealed, :policies::jsonb, :groups::jsonb,
        :lifetimeSeconds::integer, now() + make_interval(secs => :lifetimeSeconds::integer))
      on conflict do nothing`,
      { ...given, policies: JSON.stringify(given.policies), groups: JSON.stringify(given.groups) },
    );
  }

  /** Answers a question that waits; undefined when it does not wait any more. */
  async decide(
    tx: Tx,
    { id, orgId }: Pick<ApprovalEntity, 'id' | 'orgId'>,
    answer: { state: ApprovalState; by: string; reason?: string; uses: number; lifetimeSeconds: number },
  ): Promise<ApprovalEntity | undefined> {
    const { state, by, reason = null, uses, lifetimeSeconds } = answer;
    const [rows] = await queryIn<[ApprovalEntity[], number]>(
      tx,
      `
      update approvals
      set state = :state,
        decided_at = now(),
        decided_by = :by,
        reason = :reason,
        uses_left = :uses,
        expires_at = now() + make_interval(secs => :lifetimeSeconds::integer)
      where id = :id and org_id = :orgId and state = 'pending' and expires_at > now()
      returning ${columns}`,
      { id, orgId, state, by, reason, uses, lifetimeSeconds },
    );
    return rows[0];
  }

  async find(orgId: string, id: string, tx?: Tx): Promise<ApprovalEntity | undefined> {
    const statement = `
      select ${columns}
      from approvals
      where id = :id and org_id = :orgId`;
    const params = { id, orgId };
    const [row] = await (tx
      ? queryIn<ApprovalEntity[]>(tx, statement, params)
      : this.pg.rows<ApprovalEntity>('approval-find', statement, params));
    return row;
  }

  /** Lists the approvals that a reader asked for or may decide, newest first. */
  page(
    orgId: string,
    { caller, groups }: Reader,
    { state, before, limit }: { state?: ApprovalState; before?: string; limit: number },
  ): Promise<ApprovalEntity[]> {
    return this.pg.rows<ApprovalEntity>(
      'approval-page',
      `
      select *
      from (select ${columns} from approvals where org_id = :orgId) a
      where (:before::uuid is null or id < :before::uuid)
        and (:state::text is null or state = :state::text)
        and (:groups::jsonb is null or caller = :caller or groups <@ :groups::jsonb)
      order by id desc
      limit :limit`,
      {
        orgId,
        caller,
        groups: groups ? JSON.stringify(groups) : null,
        state: state ?? null,
        before: before ?? null,
        limit: limit + 1,
      },
    );
  }

  /** Deletes approvals that expired this many days ago. */
  async dropOld(days: number): Promise<void> {
    await this.pg.rows(
      'approval-drop',
      `
      delete from approvals
      where expires_at < now() - make_interval(days => :days::integer)`,
      { days },
    );
  }
}
