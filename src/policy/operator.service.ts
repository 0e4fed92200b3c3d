import type { DataSource } from 'typeorm';
import { auditRecorderOn } from '../audit/audit-recorder.port.js';
import type { CallContext } from '../kernel/call-context.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Ledger } from '../platform/bus/ledger.js';
import { Notices } from '../platform/bus/notices.js';
import type { Settings } from '../platform/config/settings.js';
import { Pg } from '../platform/database/pg.js';
import { RowWriter } from '../platform/database/row-writer.js';
import { TxRunner } from '../platform/database/tx.js';
import { Cursors } from '../platform/http/cursor.js';
import type { Resealed } from '../platform/secrets/sealed-columns.js';
import { Vault } from '../platform/secrets/vault.js';
import type { Logger } from '../platform/telemetry/logger.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { PolicyEntity } from './admin/policy.entity.js';
import { PolicyStore } from './admin/policy.store.js';
import { CredentialStore } from './auth/credential.store.js';
import { Bootstrap } from './bootstrap.js';
import { PolicyDecider } from './decisions/policy-decider.js';
import { DeploymentKeys } from './operator/deployment-keys.js';
import { operatorContext } from './operator/operator-context.js';
import { OperatorTokens } from './operator/operator-tokens.js';
import { OrgService } from './org.service.js';
import { defaultOrg } from './org.types.js';
import { AdminTokenFile } from './orgs/admin-token-file.js';
import { ApiKeyStore } from './orgs/api-key.store.js';
import { MemberService } from './orgs/member.service.js';
import { MemberStore } from './orgs/member.store.js';
import { ApiKeyEntity, MemberEntity, OrgEntity } from './orgs/org.entity.js';
import { OrgStore } from './orgs/org.store.js';
import { TokenSecretService } from './orgs/token-secret.service.js';
import { TokenSecretStore } from './orgs/token-secret.store.js';
import { TrustQuotaStore } from './trust/trust-quota.store.js';
import { TrustQuotas } from './trust-quotas.js';
import { PolicyService } from './policy.service.js';

/**
 * Administration for the `rialto` command, by the operator of the machine. It asks no policy, so that a broken policy
 * cannot lock out the operator; everything is audited. It is composed by hand, because no application runs around it.
 */
export class OperatorService {
  private constructor(
    readonly policies: PolicyService,
    readonly tokens: OperatorTokens,
    private readonly store: CredentialStore,
    private readonly keys: DeploymentKeys,
    private readonly notices: Notices,
  ) {}

  /** Creates the service on a migrated database. Creates the default org when it does not exist. */
  static async open(dataSource: DataSource, settings: Settings, log: Logger): Promise<OperatorService> {
    const pg = Pg.of(dataSource);
    const vault = new Vault(settings.encryptionKey, settings.otherEncryptionKey);
    const txs = new TxRunner(dataSource);
    const metrics = new Metrics();
    const ledger = new Ledger(new RowWriter(pg.pool), metrics);
    ledger.add(auditRecorderOn(pg, vault));
    const decider = () => ({ allowed: true, policies: [], reason: 'the operator of the deployment' });
    const admin = new AdminActs(new VerbBus({ decider, ledger }), txs, ledger);
    const notices = new Notices(pg.pool, '', log);
    const cursors = new Cursors(vault);
    const store = new CredentialStore(pg, vault);
    const policyStore = new PolicyStore(dataSource.getRepository(PolicyEntity), pg);
    const policies = new PolicyService(admin, policyStore, new PolicyDecider(policyStore), notices, cursors);
    const orgStore = new OrgStore(dataSource.getRepository(OrgEntity), notices);
    const orgs = new OrgService(settings, orgStore, policies, admin, cursors);
    if (!(await store.orgBySlug(defaultOrg))) {
      const keyStore = new ApiKeyStore(dataSource.getRepository(ApiKeyEntity), notices);
      const tokenFile = new AdminTokenFile(settings, store, keyStore, txs);
      await new Bootstrap(settings, orgs, policies, tokenFile, txs).prepareDefaultOrg();
    }
    const memberStore = new MemberStore(dataSource.getRepository(MemberEntity), notices);
    const quotas = new TrustQuotas(settings, orgs, new TrustQuotaStore(pg), metrics);
    const members = new MemberService(orgs, memberStore, admin, cursors, quotas);
    const secrets = new TokenSecretService(orgs, new TokenSecretStore(pg, vault, notices), admin);
    const tokens = new OperatorTokens(store, orgs, members, memberStore, secrets);
    return new OperatorService(policies, tokens, store, new DeploymentKeys(admin, pg, vault), notices);
  }

  /** Returns the context of an act on an org. Throws `not_found`. */
  contextOn(slug: string): Promise<CallContext> {
    return operatorContext(this.store, slug);
  }

  /**
   * Creates a new key for cards and checkpoints and returns its id. The previous key stays published for
   * `graceSeconds`.
   */
  async rotateSigningKey(graceSeconds: number): Promise<string> {
    return this.keys.rotateSigning(await this.contextOn(defaultOrg), graceSeconds);
  }

  /** Seals the secrets of the other encryption key again with the current key. */
  async rotateEncryption(): Promise<Resealed> {
    return this.keys.reseal(await this.contextOn(defaultOrg));
  }

  /** Sends the pending notices to running gateways. The data source stays open. */
  close(): Promise<void> {
    return this.notices.close();
  }
}
