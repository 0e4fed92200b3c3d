import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { callerOf } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import { storableText } from '../kernel/json.js';
import type { Act } from '../kernel/verb-bus.js';
import type { Decision, NeededApproval } from '../kernel/verbs.js';
import { TxRunner } from '../platform/database/tx.js';
import { Vault } from '../platform/secrets/vault.js';
import { contentOf, digestOf } from './act-digest.js';
import { ApprovalPages } from './page/approval-pages.js';
import type { ApprovalEntity } from './storage/approval.entity.js';
import { ApprovalStore } from './storage/approval.store.js';

/** Characters of an act that an approver can read. A larger act cannot be approved. */
const maxContent = 65_536;
/** Pause between two looks for the act that an act repeats, in milliseconds. */
const repeatPauseMs = 50;
/** Questions of one caller that wait at the same time. */
const maxWaiting = 100;

/** Lets acts run that a person approved, and asks for the approval of others. It is the approver of the verb bus. */
@Injectable()
export class ApprovalGate {
  constructor(
    private readonly store: ApprovalStore,
    private readonly txs: TxRunner,
    private readonly vault: Vault,
    private readonly pages: ApprovalPages,
  ) {}

  /**
   * Uses the approval of an act. Returns the decision that permits it, or one that denies it when a person refused the
   * act. A repeat of an act that ran is permitted, because it does nothing. Throws `approval_required` while the
   * question waits, `rate_limited` when too many wait, and the error of an act that is refused in any case.
   */
  async decide(act: Act, decision: Decision, needs: NeededApproval): Promise<Decision> {
    if (await act.repeats?.()) return repeated(decision);
    const covered = coveredBy(act.within?.decision, decision, needs);
    if (covered) return covered;
    await act.check?.();
    const digest = digestOf(act, decision.version, needs, await act.behind?.());
    const used = await this.store.use(act.ctx.org.id, digest, act.id, act.attemptKey);
    if (used) return approved(decision, used);
    if (await this.repeatsRunning(act, digest)) return repeated(decision);
    const open = await this.ask(act, digest, decision, together(needs, await act.workNeeds?.()));
    return open.state === 'denied' ? refused(decision, open) : Promise.reject(this.required(act, decision, open));
  }

  /**
   * Waits while the act that an act repeats has just used the approval and is not stored yet. Returns true when it is
   * stored.
   */
  private async repeatsRunning({ ctx, repeats }: Act, digest: string): Promise<boolean> {
    while (repeats && !ctx.signal?.aborted && (await this.store.isJustUsed(ctx.org.id, digest))) {
      await sleep(repeatPauseMs);
      if (await repeats()) return true;
    }
    return false;
  }

  /** Returns the open question about an act; creates it when there is none. */
  private ask(act: Act, digest: string, { policies }: Decision, needs: NeededApproval): Promise<ApprovalEntity> {
    const { ctx, verb, action, resource } = act;
    const org = ctx.org.id;
    return this.txs.run(async (tx) => {
      const known = await this.store.findOpen(tx, org, digest);
      if (known) return known;
      const caller = callerOf(ctx.principal);
      if ((await this.store.countWaiting(tx, org, caller)) >= maxWaiting) throw tooMany();
      const id = newId();
      const content = JSON.stringify(contentOf(act));
      if (content.length > maxContent) throw tooLarge(content.length);
      await this.store.insert(tx, {
        id,
        orgId: org,
        digest,
        caller,
        verb: storableText(verb, 256),
        action,
        resource: storableText(`${resource.type}::${JSON.stringify(resource.id)}`, 512),
        sealed: this.vault.seal(content, { table: 'approvals', row: id, org }),
        policies,
        groups: needs.groups,
        lifetimeSeconds: Math.round(needs.lifetimeMs / 1_000),
      });
      return (await this.store.findOpen(tx, org, digest))!;
    });
  }

  private required(act: Act, { policies }: Decision, { id, groups, expiresAt }: ApprovalEntity): RialtoError {
    const url = this.pages.urlOf(id);
    return new RialtoError('approval_required', {
      message: `a person must approve this call (${groups.join(' and ')}): ${url}`,
      hint: 'send the same call again after the approval; any change of it needs a new approval',
      data: {
        verb: act.verb,
        policies,
        decisionId: act.id,
        approvalId: id,
        approvalUrl: url,
        approvers: groups,
        expiresAt: expiresAt.toISOString(),
      },
    });
  }
}

/** Returns one question for two needs: an approver of all groups of both, within the shorter time. */
function together(needs: NeededApproval, more: NeededApproval | undefined): NeededApproval {
  if (!more) return needs;
  return {
    groups: [...new Set([...needs.groups, ...more.groups])],
    lifetimeMs: Math.min(needs.lifetimeMs, more.lifetimeMs),
  };
}

/** Permits the work of an approved act when its approver was in all groups that the work needs. */
function coveredBy(outer: Decision | undefined, own: Decision, { groups }: NeededApproval): Decision | undefined {
  const { approval, reason, by } = outer ?? {};
  if (reason === undefined || !approval || !groups.every((group) => approval.groups.includes(group))) return undefined;
  return { allowed: true, policies: own.policies, version: own.version, reason, approval, by };
}

function approved(decision: Decision, { id, groups, decidedBy, reason }: ApprovalEntity): Decision {
  const { policies, version } = decision;
  const because = reason === null ? '' : `: ${reason}`;
  return {
    allowed: true,
    policies,
    version,
    reason: `approved by ${decidedBy} with approval ${id}${because}`,
    approval: { id, by: decidedBy!, groups },
    by: decidedBy!,
  };
}

function repeated({ policies, version }: Decision): Decision {
  return { allowed: true, policies, version, reason: 'repeats an earlier call with the same idempotency key' };
}

function refused({ policies, version }: Decision, { id, decidedBy, reason }: ApprovalEntity): Decision {
  const because = reason === null ? '' : `: ${reason}`;
  return {
    allowed: false,
    policies,
    version,
    reason: `refused by ${decidedBy} with approval ${id}${because}`,
    by: decidedBy!,
  };
}

function tooMany(): RialtoError {
  return new RialtoError('rate_limited', {
    message: `${maxWaiting} calls of this caller wait for an approval, which is the maximum`,
    data: { retryAfterSeconds: 60 },
  });
}

function tooLarge(characters: number): RialtoError {
  return new RialtoError('too_large', {
    message: `a call that needs an approval may have at most ${maxContent} characters, and this one has ${characters}`,
  });
}
