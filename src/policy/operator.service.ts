import type { DataSource } from 'typeorm';
import { auditRecorder } from '../audit/audit-recorder.port.js';
import type { CallContext, OrgRef, Role } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Ledger } from '../platform/bus/ledger.js';
import { Notices } from '../platform/bus/notices.js';
import type { Settings } from '../platform/config/settings.js';
import { Pg } from '../platform/database/pg.js';
import { RowWriter } from '../platform/database/row-writer.js';
import { TxRunner } from '../platform/database/tx.js';
import { Cursors } from '../platform/http/cursor.js';
import { resealAll, type Resealed } from '../platform/secrets/sealed-columns.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { Vault } from '../platform/secrets/vault.js';
import type { Logger } from '../platform/telemetry/logger.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { PolicyDecider } from './decisions/policy-decider.js';
import { PolicyEntity } from './admin/policy.entity.js';
import { PolicyService } from './policy.service.js';
import { PolicyStore } from './admin/policy.store.js';
import { defaultOrg } from './auth.service.js';
import { Bootstrap } from './bootstrap.js';
import { CredentialStore } from './auth/credential.store.js';
import { MemberEntity, OrgEntity } from './auth/org.entity.js';
import { OrgActs } from './auth/org-acts.js';
import { OrgService } from './org.service.js';

/** Who asks for the token of `asMember`, and how much may be made for it. */
export interface MemberWish {
  readonly org: string;
  readonly sub: string;
  /** Absent: whatever the member is, `member` for a new one. */
  readonly role?: Role;
  /** Make the org and the member, or change the role, when they are not as wished. */
  readonly create: boolean;
}

/**
 * Administration by whoever holds the machine, for the `rialto` command. No policy is asked, so a broken one locks nobody
 * out for ever; everything is audited. Composed by hand, because no application runs around it.
 */
export class OperatorService {
  private constructor(
    readonly orgs: OrgService,
    readonly policies: PolicyService,
    private readonly store: CredentialStore,
    private readonly dataSource: DataSource,
    private readonly notices: Notices,
    private readonly keys: {
      readonly rotate: (ctx: CallContext, graceSeconds: number) => Promise<string>;
      readonly reseal: (ctx: CallContext) => Promise<Resealed>;
    },
  ) {}

  /** On a migrated database; makes the default org when there is none yet. */
  static async open(dataSource: DataSource, settings: Settings, log: Logger): Promise<OperatorService> {
    const pg = Pg.of(dataSource);
    const vault = new Vault(settings.encryptionKey, settings.otherEncryptionKey);
    const txs = new TxRunner(dataSource);
    const ledger = new Ledger(new RowWriter(pg.pool), new Metrics());
    ledger.add(auditRecorder);
    const decider = () => ({ allowed: true, policies: [], reason: 'the operator of the deployment' });
    const admin = new AdminActs(new VerbBus({ decider, ledger }), txs, ledger);
    const notices = new Notices(pg.pool, '', log);
    const cursors = new Cursors(vault);
    const store = new CredentialStore(pg, vault);
    const policyStore = new PolicyStore(dataSource.getRepository(PolicyEntity), pg);
    const policies = new PolicyService(admin, policyStore, new PolicyDecider(policyStore), store, notices, cursors);
    const acts = new OrgActs(admin, notices);
    const orgs = new OrgService(settings, dataSource.getRepository(OrgEntity), acts, policies, cursors, vault);
    if (!(await store.orgBySlug(defaultOrg))) await new Bootstrap(settings, store, orgs, policies, txs).run();
    const keys = new SigningKeys(pg, vault);
    const rotate = (ctx: CallContext, grace: number) =>
      admin.prepareAndWrite(
        ctx,
        'signing-key.rotate',
        { grace },
        () => keys.rotate(grace),
        (_tx, kid) => Promise.resolve(kid),
      );
    const reseal = (ctx: CallContext) =>
      admin.prepareAndWrite(
        ctx,
        'encryption-key.rotate',
        {},
        () => resealAll(pg.pool, vault),
        (_tx, done) => Promise.resolve(done),
      );
    return new OperatorService(orgs, policies, store, dataSource, notices, { rotate, reseal });
  }

  /** The context of an act on an org. Throws `not_found`. */
  async on(slug: string): Promise<CallContext> {
    const org = await this.store.orgBySlug(slug);
    if (!org) throw new RialtoError('not_found', { message: `there is no org "${slug}"` });
    return contextOf(org);
  }

  /**
   * Makes sure that tokens of this subject are accepted by this org; answers the role that it had before when that changed.
   * Throws `not_found` or `conflict` where it may not.
   */
  async admit({ org: slug, sub, role, create }: MemberWish): Promise<Role | undefined> {
    if (create && !(await this.store.orgBySlug(slug))) await this.orgs.create(await this.on(defaultOrg), { slug });
    const ctx = await this.on(slug);
    const member = await this.dataSource.getRepository(MemberEntity).findOneBy({ orgId: ctx.org.id, sub });
    if (member && !member.active)
      throw new RialtoError('conflict', { message: `"${sub}" was deactivated in the org "${slug}"` });
    if (member && (role === undefined || role === member.role)) return undefined;
    if (!create)
      throw member
        ? new RialtoError('conflict', {
            message: `"${sub}" has the role ${member.role} in the org "${slug}", not ${role}`,
          })
        : new RialtoError('not_found', { message: `"${sub}" is no member of the org "${slug}"` });
    const groups = member?.groups ?? [];
    await this.orgs.saveMember(ctx, slug, { sub, role: role ?? 'member', groups, active: true });
    return member?.role;
  }

  /** The newest secret that tokens of an org are signed by; undefined when it has none of its own. */
  async signingSecret(slug: string): Promise<Buffer | undefined> {
    return (await this.store.orgKeys(slug))?.secrets[0];
  }

  /** Makes a new secret for an org; the one before is accepted for `graceSeconds` more. */
  async rotateSecret(slug: string, graceSeconds: number): Promise<string> {
    return (await this.orgs.rotateSecret(await this.on(slug), slug, { graceSeconds })).secret;
  }

  /** Makes a new key for cards and checkpoints and answers its id; the one before stays published for `graceSeconds` more. */
  async rotateSigningKey(graceSeconds: number): Promise<string> {
    return this.keys.rotate(await this.on(defaultOrg), graceSeconds);
  }

  /** Seals with the encryption key of today what the other one sealed. */
  async rotateEncryption(): Promise<Resealed> {
    return this.keys.reseal(await this.on(defaultOrg));
  }

  /** Tells running gateways what changed. The data source stays open. */
  close(): Promise<void> {
    return this.notices.close();
  }
}

function contextOf(org: OrgRef): CallContext {
  const principal = { kind: 'service', id: 'rialto-cli', role: 'admin', groups: [] } as const;
  return { org, principal, surface: 'system', requestId: newId(), depth: 0 };
}
