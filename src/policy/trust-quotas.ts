import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { OrgId } from '../kernel/ids.js';
import type { TrustTier } from '../kernel/trust.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import type { Tx } from '../platform/database/tx.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { OrgService } from './org.service.js';
import { TrustQuotaStore } from './trust/trust-quota.store.js';
import { nextDay, quotaOf, quotaText, type QuotaKind } from './trust/trust-tiers.js';

/**
 * Quotas of an org by its trust tier (RI-49). They apply only with RIALTO_TRUST_QUOTAS; without it, nothing is counted
 * and no statement is run (docs/decisions/0010-trust-quotas.md).
 */
@Injectable()
export class TrustQuotas {
  private readonly isOn: boolean;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    private readonly orgs: OrgService,
    private readonly store: TrustQuotaStore,
    private readonly metrics: Metrics,
  ) {
    this.isOn = settings.RIALTO_TRUST_QUOTAS;
  }

  /**
   * Counts one message that an org sends while it is stored. A message that is not stored, because storing it fails or
   * because a concurrent one with its key came first, is not counted. Throws `denied` for an org of tier 0, and
   * `rate_limited` with the time at which the next day begins. Counts nothing while quotas are off.
   * @param store returns undefined when nothing was stored.
   */
  async admitMessage<Stored>(org: OrgId, store: () => Promise<Stored | undefined>): Promise<Stored | undefined> {
    const day = this.isOn && (await this.countMessage(org));
    if (!day) return store();
    let stored: Stored | undefined;
    try {
      stored = await store();
    } finally {
      if (stored === undefined) await this.store.uncountMessage(org, day);
    }
    return stored;
  }

  /**
   * Throws `rate_limited` when an org has more than its tier allows.
   * @param count the number with the change; read only while quotas are on and the tier has a quota.
   * @param tx the transaction of the change. Changes of one org then wait for each other, so that the count is exact.
   */
  async requireWithin(org: OrgId, kind: QuotaKind, count: () => Promise<number>, tx?: Tx): Promise<void> {
    if (!this.isOn) return;
    const tier = await (tx ? this.store.lockTier(tx, org) : this.orgs.trustTier(org));
    const limit = quotaOf(tier, kind);
    if (limit !== Infinity && (await count()) > limit) throw this.refusal(tier, kind);
  }

  /** Throws `rate_limited` when the members and keys of an org have more groups than its tier allows. */
  requireGroups(tx: Tx, org: OrgId): Promise<void> {
    return this.requireWithin(org, 'groups', () => this.store.countGroups(tx, org), tx);
  }

  /** Returns the day to which the message was added; undefined for a tier without a quota. */
  private async countMessage(org: OrgId): Promise<string | undefined> {
    const tier = await this.orgs.trustTier(org);
    const limit = quotaOf(tier, 'messages');
    if (limit === Infinity) return undefined;
    if (limit === 0) throw new RialtoError('denied', { message: `an org of trust tier ${tier} may not send messages` });
    const day = await this.store.countMessage(org, limit);
    if (day === undefined) throw this.refusal(tier, 'messages');
    return day;
  }

  private refusal(tier: TrustTier, kind: QuotaKind): RialtoError {
    this.metrics.limited.inc({ scope: `quota of ${kind}` });
    const now = systemClock.now();
    const until = kind === 'messages' ? nextDay(now) : undefined;
    const resetsAt = until === undefined ? undefined : new Date(until).toISOString();
    return new RialtoError('rate_limited', {
      message: quotaText(tier, kind),
      hint: resetsAt
        ? `the quota is free again at ${resetsAt}; an admin of the deployment can raise the tier`
        : `remove some of the ${kind}, or ask an admin of the deployment to raise the tier`,
      data: {
        quota: kind,
        limit: quotaOf(tier, kind),
        trustTier: tier,
        ...(until !== undefined && { resetsAt, retryAfterSeconds: Math.ceil((until - now) / 1_000) }),
      },
    });
  }
}
