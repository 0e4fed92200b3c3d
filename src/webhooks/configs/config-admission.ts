import { Injectable } from '@nestjs/common';
import type { AgentId, OrgId } from '../../kernel/ids.js';
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
   * the trust tier of its org allows.
   */
  async requireAdmissible(org: OrgId, agent: AgentId, config: PushConfig): Promise<void> {
    requirePostable(this.safeFetch, config);
    await this.quotas.requireWithin(
      org,
      'webhooks',
      async () => (await this.configs.countOtherUrls(org, agent, config.url)) + 1,
    );
  }
}
