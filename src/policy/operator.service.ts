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

/** The org, subject and role that a token is wanted for, and whether they may be created. */
export interface MemberWish {
  readonly org: string;
  readonly sub: string;
  /** Undefined: the current role of the member, or `member` for a new one. */
  readonly role?: Role;
  /** True: create the org and the member, or change the role, when they differ. */
  readonly create: boolean;
}

/**
 * Administration for the `rialto` command, by the operator of the machine. It asks no policy, so that a broken policy
 * cannot lock out the operator; everything is audited. It is composed by hand, because no application runs around it.
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

  /** Creates the service on a migrated database. Creates the default org when it does not exist. */
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

  /** Returns the context of an act on an org. Throws `not_found`. */
  async on(slug: string): Promise<CallContext> {
    const org = await this.store.orgBySlug(slug);
    if (!org) throw new RialtoError('not_found', { message: `there is no org "${slug}"` });
    return contextOf(org);
  }

  /**
   * Makes an org accept tokens of a subject. Returns the previous role when it changed. Throws `not_found` or
   * `conflict` when the change is not allowed.
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
        : new RialtoError('not_found', { message: `"${sub}" is not a member of the org "${slug}"` });
    const groups = member?.groups ?? [];
    await this.orgs.saveMember(ctx, slug, { sub, role: role ?? 'member', groups, active: true });
    return member?.role;
  }

  /** Returns the newest secret that signs tokens of an org; undefined when it has none. */
  async signingSecret(slug: string): Promise<Buffer | undefined> {
    return (await this.store.orgKeys(slug))?.secrets[0];
  }

  /** Creates a new secret for an org. The previous one stays valid for `graceSeconds`. */
  async rotateSecret(slug: string, graceSeconds: number): Promise<string> {
    return (await this.orgs.rotateSecret(await this.on(slug), slug, { graceSeconds })).secret;
  }

  /**
   * Creates a new key for cards and checkpoints and returns its id. The previous key stays published for
   * `graceSeconds`.
   */
  async rotateSigningKey(graceSeconds: number): Promise<string> {
    return this.keys.rotate(await this.on(defaultOrg), graceSeconds);
  }

  /** Seals the secrets of the other encryption key again with the current key. */
  async rotateEncryption(): Promise<Resealed> {
    return this.keys.reseal(await this.on(defaultOrg));
  }

  /** Sends the pending notices to running gateways. The data source stays open. */
  close(): Promise<void> {
    return this.notices.close();
  }
}

function contextOf(org: OrgRef): CallContext {
  const principal = { kind: 'service', id: 'rialto-cli', role: 'admin', groups: [] } as const;
  return { org, principal, surface: 'system', requestId: newId(), depth: 0 };
}
