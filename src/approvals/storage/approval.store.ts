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

/** Reads and changes approvals. Each change is one statement on one row, so that of two at once one wins. */
@Injectable()
export class ApprovalStore {
  constructor(private readonly pg: Pg) {}

  /** Uses the approval of an act once; undefined when there is none to use. */
  async use(orgId: string, digest: string, act: string): Promise<ApprovalEntity | undefined> {
    const [row] = await this.pg.rows<ApprovalEntity>(
      'approval-use',
      `
      update approvals
      set uses_left = uses_left - 1,
        state = case when uses_left = 1 then 'used' else state end,
        used_at = now(),
        used_by = :act
      where org_id = :orgId and digest = :digest and state = 'approved' and expires_at > now()
      returning ${columns}`,
      { orgId, digest, act },
    );
    return row;
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

  /** Returns how many questions of a caller wait for an answer. */
  async countWaiting(tx: Tx, orgId: string, caller: string): Promise<number> {
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

  async find(orgId: string, id: string): Promise<ApprovalEntity | undefined> {
    const [row] = await this.pg.rows<ApprovalEntity>(
      'approval-find',
      `
      select ${columns}
      from approvals
      where id = :id and org_id = :orgId`,
      { id, orgId },
    );
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
