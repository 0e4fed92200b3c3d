import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Inject, Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, writePrivateFile, type Settings } from '../platform/config/settings.js';
import { TxRunner } from '../platform/database/tx.js';
import { PolicyService } from './policy.service.js';
import { apiKeyPrefix, defaultOrg, hashKey } from './auth.service.js';
import { CredentialStore } from './auth/credential.store.js';
import { OrgService } from './org.service.js';

/** Advisory lock key that serialises the bootstrap of processes that start at the same time. */
export const bootstrapLock = 7_262_913;

/**
 * Creates what must exist before the first call: the default org, declared policies and, in development, an admin
 * token file.
 */
@Injectable()
export class Bootstrap {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: CredentialStore,
    private readonly orgs: OrgService,
    private readonly policies: PolicyService,
    private readonly txs: TxRunner,
  ) {}

  /**
   * Runs the bootstrap. It is idempotent, also when several processes start at the same time. Returns the default org
   * and the token file.
   */
  async run(): Promise<{ org: OrgId; tokenFile?: string }> {
    const org = await this.txs.run(async (tx) => {
      await tx.manager.query('select pg_advisory_xact_lock($1)', [bootstrapLock]);
      const known = await this.store.orgBySlug(defaultOrg);
      return known?.id ?? (await this.orgs.insert(tx, { slug: defaultOrg, name: 'Default' })).id;
    });
    await this.txs.run((tx) => this.policies.reconcile(tx, org, this.settings.configFile.policies));
    return { org, tokenFile: this.settings.production ? undefined : await this.adminToken(org) };
  }

  /** Writes an admin API key to a private file and returns its path. The key stays the same after a restart. */
  private async adminToken(org: OrgId): Promise<string> {
    const file = join(resolve(this.settings.RIALTO_DATA_DIR), 'token');
    const stored = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    const usable = stored.startsWith(apiKeyPrefix) && stored.length > 20;
    if (usable && (await this.store.bearerOfKey(hashKey(stored)))) return file;
    const key = usable ? stored : `${apiKeyPrefix}${randomBytes(32).toString('base64url')}`;
    await this.txs.run((tx) => this.orgs.insertKey(tx, org, { name: 'admin', role: 'admin', groups: [] }, key));
    writePrivateFile(file, `${key}\n`);
    return file;
  }
}
