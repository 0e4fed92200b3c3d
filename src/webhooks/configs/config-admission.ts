import { Injectable } from '@nestjs/common';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import type { Tx } from '../../platform/database/tx.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { TrustQuotas } from '../../policy/trust-quotas.js';
import type { PushConfig } from '../../protocol/a2a/request/operations.js';
import { requirePostable } from './postable.js';
import { PushConfigStore } from './push-config.store.js';

/** Checks a push configuration before it is stored. */
@Injectable()
export class ConfigAdmission {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly quotas: TrustQuotas,
    private readonly configs: PushConfigStore,
  ) {}

  /**
   * Throws the errors of requirePostable, and `rate_limited` when the agent has as many webhooks (different URLs) as
   * the trust tier of its org allows. Others may be added before this one is stored.
   */
  async requireAdmissible(org: OrgId, agent: AgentId, config: PushConfig): Promise<void> {
    requirePostable(this.safeFetch, config);
    await this.requireQuota(org, agent, config);
  }

  /**
   * Throws `rate_limited` as `requireAdmissible`.
   * @param tx the transaction that stores it. Changes of one org then wait for each other, so that the count is exact.
   */
  requireQuota(org: OrgId, agent: AgentId, { url }: PushConfig, tx?: Tx): Promise<void> {
    const count = async () => (await this.configs.countOtherUrls(org, agent, url, tx)) + 1;
    return this.quotas.requireWithin(org, 'webhooks', count, tx);
  }
}
