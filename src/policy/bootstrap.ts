import { Inject, Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { TxRunner } from '../platform/database/tx.js';
import { OrgService } from './org.service.js';
import { defaultOrg } from './org.types.js';
import { AdminTokenFile } from './orgs/admin-token-file.js';
import { PolicyService } from './policy.service.js';

/**
 * Creates what must exist before the first call: the default org, declared policies and, in development, an admin
 * token file.
 */
@Injectable()
export class Bootstrap {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly orgs: OrgService,
    private readonly policies: PolicyService,
    private readonly tokenFile: AdminTokenFile,
    private readonly txs: TxRunner,
  ) {}

  /**
   * Runs the bootstrap. It is idempotent, also when several processes start at the same time. Returns the default org
   * and the token file.
   */
  async prepareDefaultOrg(): Promise<{ org: OrgId; tokenFile?: string }> {
    const { id: org } = await this.txs.run((tx) => this.orgs.declareOrg(tx, { slug: defaultOrg, name: 'Default' }));
    await this.txs.run((tx) => this.policies.reconcile(tx, org, this.settings.configFile.policies));
    return { org, tokenFile: this.settings.production ? undefined : await this.tokenFile.writeKey(org) };
  }
}
