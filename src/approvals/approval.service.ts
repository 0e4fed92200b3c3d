import { Injectable } from '@nestjs/common';
import { callerOf, groupsOf, type CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import type { Tx } from '../platform/database/tx.js';
import { inTurns } from '../platform/turns.js';
import { Vault } from '../platform/secrets/vault.js';
import { parseExact } from '../protocol/exact-integers.js';
import { lifetimeOf } from '../policy/policy.types.js';
import type { ApprovalQuery, ApprovalView, DecideApproval } from './approval.types.js';
import { ApprovalPages } from './page/approval-pages.js';
import type { ApprovalEntity } from './storage/approval.entity.js';
import { ApprovalStore } from './storage/approval.store.js';

/** Shows approvals to callers and approvers, and takes the decisions of approvers. */
@Injectable()
export class ApprovalService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: ApprovalStore,
    private readonly vault: Vault,
    private readonly cursors: Cursors,
    private readonly pages: ApprovalPages,
  ) {}

  /** Lists the approvals that the caller asked for or may decide; for admins, those of the org. Newest first. */
  list(ctx: CallContext, { state, limit, cursor }: ApprovalQuery): Promise<Page<ApprovalView>> {
    return this.admin.read(ctx, 'approval.list', async () => {
      const scope = `approvals:${ctx.org.id}`;
      const [before] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const caller = callerOf(ctx.principal);
      const groups = ctx.principal.role === 'admin' ? undefined : groupsOf(ctx.principal);
      const rows = await this.store.page(ctx.org.id, { caller, groups }, { state, before, limit });
      const page = pageOf(
        rows,
        limit,
        (row) => row,
        ({ id }) => this.cursors.encode(scope, [id]),
      );
      return { ...page, items: await inTurns(this.viewsOf(ctx, page.items)) };
    });
  }

  /** Throws `not_found` also for an approval that the caller may neither see nor decide. */
  get(ctx: CallContext, id: string): Promise<ApprovalView> {
    return this.admin.read(ctx, 'approval.get', async () => {
      const row = await this.findApproval(ctx, id);
      const { principal } = ctx;
      const isVisible = principal.role === 'admin' || row.caller === callerOf(principal) || isApprover(ctx, row);
      return isVisible ? this.viewOf(ctx, row) : Promise.reject(unknown());
    });
  }

  /**
   * Approves or denies. Throws `denied` for a caller who is not in the groups of the approvers or who asked for the
   * approval, and `conflict` when it was decided or expired already.
   */
  decide(ctx: CallContext, id: string, answer: DecideApproval): Promise<ApprovalView> {
    const { decision, reason, uses, expiresIn } = answer;
    return this.admin.perform(
      {
        ctx,
        verb: `approval.${decision}`,
        action: 'approval_decide',
        resource: { type: 'Org', id: ctx.org.slug },
        sessionId: id,
        args: { approval: id, uses, ...(expiresIn !== undefined && { expiresIn }) },
      },
      async () => {
        const row = await this.findApproval(ctx, id);
        requireApprover(ctx, row);
        return row;
      },
      async (tx, row) => {
        const decided = await this.store.decide(tx, row, {
          state: decision === 'approve' ? 'approved' : 'denied',
          by: callerOf(ctx.principal),
          reason,
          uses,
          lifetimeSeconds: (lifetimeOf(expiresIn) ?? row.lifetimeSeconds * 1_000) / 1_000,
        });
        if (decided) return this.viewOf(ctx, decided);
        throw alreadyDecided(await this.findApproval(ctx, id, tx));
      },
    );
  }

  private async findApproval(ctx: CallContext, id: string, tx?: Tx): Promise<ApprovalEntity> {
    const row = isUuid(id) ? await this.store.find(ctx.org.id, id, tx) : undefined;
    return row ?? Promise.reject(unknown());
  }

  /** Opens the contents of approvals, which may have 64 KB each, so that others can go first in between. */
  private *viewsOf(ctx: CallContext, rows: readonly ApprovalEntity[]): Generator<void, ApprovalView[]> {
    const views: ApprovalView[] = [];
    for (const row of rows) {
      views.push(this.viewOf(ctx, row));
      yield;
    }
    return views;
  }

  private viewOf(ctx: CallContext, row: ApprovalEntity): ApprovalView {
    const { id, orgId, caller, verb, action, resource, policies, groups, state, decidedBy, reason, ...rest } = row;
    const content = this.vault.open(rest.sealed, { table: 'approvals', row: id, org: orgId }).reveal();
    return {
      id,
      state,
      caller,
      verb,
      action,
      resource,
      input: parseExact(content) as JsonObject,
      policies,
      approvers: groups,
      url: this.pages.urlOf(id),
      mayDecide: state === 'pending' && refusalOf(ctx, row) === undefined,
      requestedAt: rest.requestedAt.toISOString(),
      expiresAt: rest.expiresAt.toISOString(),
      decidedAt: rest.decidedAt?.toISOString() ?? null,
      decidedBy,
      reason,
      usesLeft: rest.usesLeft,
      usedAt: rest.usedAt?.toISOString() ?? null,
      usedBy: rest.usedBy,
    };
  }
}

function isApprover({ principal }: CallContext, { groups }: ApprovalEntity): boolean {
  const own = groupsOf(principal);
  return groups.every((group) => own.includes(group));
}

function requireApprover(ctx: CallContext, row: ApprovalEntity): void {
  const message = refusalOf(ctx, row);
  if (message !== undefined) throw new RialtoError('denied', { message });
}

/** Returns why the caller may not decide; undefined for an approver. */
function refusalOf(ctx: CallContext, row: ApprovalEntity): string | undefined {
  const { kind } = ctx.principal;
  if (kind === 'agent' || kind === 'anonymous') return `a caller of the kind "${kind}" may not decide; a person does`;
  if (row.caller === callerOf(ctx.principal))
    return 'the caller of an act may neither approve nor deny it; another person decides';
  return isApprover(ctx, row) ? undefined : `only members of ${row.groups.join(' and ')} may decide this`;
}

function alreadyDecided({ state, decidedBy }: ApprovalEntity): RialtoError {
  const by = decidedBy === null || state === 'expired' ? '' : ` by ${decidedBy}`;
  return new RialtoError('conflict', {
    message: `this approval does not wait any more: it is ${state}${by}`,
    hint: 'a repeated call that still needs an approval asks again',
    data: { state },
  });
}

function unknown(): RialtoError {
  return new RialtoError('not_found', { message: 'no such approval' });
}
