import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, newId, type KeyId, type OrgId } from '../kernel/ids.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { isUniqueViolation } from '../platform/database/pg.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import type { Tx } from '../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { Vault } from '../platform/secrets/vault.js';
import { PolicyService } from './policy.service.js';
import { OrgActs } from './auth/org-acts.js';
import { apiKeyPrefix, defaultOrg, hashKey, holderOf } from './auth.service.js';
import { ApiKeyEntity, MemberEntity, OrgEntity, OrgSecretEntity, RevokedTokenEntity } from './auth/org.entity.js';
import type {
  ChangeOrg,
  CreateKey,
  CreateOrg,
  KeyView,
  MemberView,
  NewKeyView,
  OrgView,
  RevokeToken,
  RotateSecret,
  SaveMember,
} from './org.types.js';

/** Settings for the tools of an org: its own, else those of the deployment. */
export interface ToolSettings {
  /** Time limit of a call to an agent without its own limit. */
  readonly timeoutMs: number;
  readonly names: 'portable' | 'canonical' | 'both';
}

type IsPublished = (org: OrgId, name: string) => Promise<boolean>;
type Paging = { limit: number; cursor?: string };

/**
 * Administers orgs, members, keys and secrets. Admins of the default org run the deployment; all others see only
 * their own org.
 */
@Injectable()
export class OrgService {
  private readonly settingsOf = new SnapshotCache<ToolSettings>({
    probe: async (id) =>
      (await this.orgs.findOne({ where: { id: id as OrgId }, select: { updatedAt: true } }))?.updatedAt.toISOString() ??
      '',
    load: async (id) => {
      const org = await this.orgs.findOneBy({ id: id as OrgId });
      return {
        timeoutMs: org?.toolTimeoutMs ?? this.settings.RIALTO_TOOL_TIMEOUT_MS,
        names: (org?.toolNames ?? this.settings.RIALTO_MCP_TOOL_NAMES) as ToolSettings['names'],
      };
    },
  });

  private isPublished: IsPublished = () => Promise.resolve(true);

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    @InjectRepository(OrgEntity) private readonly orgs: Repository<OrgEntity>,
    private readonly acts: OrgActs,
    private readonly policies: PolicyService,
    private readonly cursors: Cursors,
    private readonly vault: Vault,
  ) {}

  /** Sets the function that knows the published agents of an org. A module above this one calls it. */
  publishedFrom(ask: IsPublished): void {
    this.isPublished = ask;
  }

  list(ctx: CallContext, { limit, cursor }: Paging): Promise<Page<OrgView>> {
    return this.acts.admin.read(ctx, 'org.list', async () => {
      const [after] = cursor ? this.cursors.decode(`orgs:${ctx.org.id}`, cursor, 1) : [];
      const query = this.orgs
        .createQueryBuilder('org')
        .where('org.deleted_at is null')
        .orderBy('org.slug')
        .limit(limit + 1);
      if (!runsDeployment(ctx)) query.andWhere('org.id = :id', { id: ctx.org.id });
      if (after !== undefined) query.andWhere('org.slug > :after', { after });
      return pageOf(await query.getMany(), limit, orgView, (row) =>
        this.cursors.encode(`orgs:${ctx.org.id}`, [row.slug]),
      );
    });
  }

  get(ctx: CallContext, slug: string): Promise<OrgView> {
    return this.acts.admin.read(ctx, 'org.get', async () => orgView(await this.visible(ctx, slug)));
  }

  create(ctx: CallContext, input: CreateOrg): Promise<OrgView> {
    return this.acts.admin.write(ctx, 'org.create', { slug: input.slug }, async (tx) => {
      if (!runsDeployment(ctx))
        throw new RialtoError('denied', { message: `only admins of the org "${defaultOrg}" may create orgs` });
      return orgView(await this.insert(tx, input));
    });
  }

  /** Changes an org. Throws `not_found`, or `invalid_params` for a default agent that is not published. */
  change(ctx: CallContext, slug: string, input: ChangeOrg): Promise<OrgView> {
    const facts = { org: slug, fields: Object.keys(input) };
    return this.acts.admin.prepareAndWrite(
      ctx,
      'org.change',
      facts,
      async () => {
        const org = await this.visible(ctx, slug);
        await this.requirePublished(org.id, input.defaultAgent);
        return org;
      },
      async (tx, org) => {
        await this.update(tx, org.id, input);
        this.acts.notices.tell(tx, 'org.changed', { orgId: org.id });
        return orgView(await tx.manager.findOneByOrFail(OrgEntity, { id: org.id }));
      },
    );
  }

  /**
   * Deletes an org. Its credentials stop at once; its data is deleted later (org-purge.sweeper.ts), its audit stays.
   */
  remove(ctx: CallContext, slug: string): Promise<void> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'org.delete',
      { org: slug },
      () => this.visible(ctx, slug),
      async (tx, org) => {
        if (org.slug === defaultOrg)
          throw new RialtoError('unprocessable', { message: 'the default org cannot be deleted' });
        await this.update(tx, org.id, { deletedAt: new Date(systemClock.now()), slug: `${org.slug}~${org.id}` });
        this.acts.tellCredentials(tx, org.id);
      },
    );
  }

  members(ctx: CallContext, slug: string, { limit, cursor }: Paging): Promise<Page<MemberView>> {
    return this.acts.admin.read(ctx, 'member.list', async () => {
      const org = await this.visible(ctx, slug);
      const [after] = cursor ? this.cursors.decode(`members:${org.id}`, cursor, 1) : [];
      const query = this.orgs.manager
        .createQueryBuilder(MemberEntity, 'member')
        .where('member.org_id = :org', { org: org.id })
        .orderBy('member.sub')
        .limit(limit + 1);
      if (after !== undefined) query.andWhere('member.sub > :after', { after });
      return pageOf(await query.getMany(), limit, memberView, (row) =>
        this.cursors.encode(`members:${org.id}`, [row.sub]),
      );
    });
  }

  /** Adds a member, or changes its role, groups and `active`. */
  saveMember(ctx: CallContext, slug: string, input: SaveMember): Promise<MemberView> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'member.save',
      { org: slug, sub: input.sub, role: input.role },
      () => this.visible(ctx, slug),
      async (tx, org) => {
        await this.putMember(tx, org.id, input);
        return memberView(await tx.manager.findOneByOrFail(MemberEntity, { orgId: org.id, sub: input.sub }));
      },
    );
  }

  removeMember(ctx: CallContext, slug: string, sub: string): Promise<void> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'member.remove',
      { org: slug, sub },
      () => this.visible(ctx, slug),
      async (tx, org) => {
        const { affected } = await tx.manager.getRepository(MemberEntity).delete({ orgId: org.id, sub });
        if (affected === 0) throw new RialtoError('not_found', { message: 'no such member' });
        this.acts.tellCredentials(tx, org.id, { caller: callerOf({ kind: 'user', id: sub }) });
      },
    );
  }

  /**
   * Creates a new secret for HS256 tokens of an org and returns it once. The previous secret stays valid for the
   * grace period.
   */
  rotateSecret(
    ctx: CallContext,
    slug: string,
    { graceSeconds }: RotateSecret,
  ): Promise<{ secret: string; graceSeconds: number }> {
    return this.acts.admin.prepareAndWrite(
      ctx,
      'org.rotate-secret',
      { org: slug },
      () => this.visible(ctx, slug),
      async (tx, org) => {
        const secret = randomBytes(48).toString('base64url');
        const id = newId();
        // By the clock of the database, which also decides when the period ends.
        const retiresAt = (): string => `now() + ${graceSeconds} * interval '1 second'`;
        await tx.manager.getRepository(OrgSecretEntity).update({ orgId: org.id, retiresAt: IsNull() }, { retiresAt });
        await tx.manager.getRepository(OrgSecretEntity).insert({
          id,
          orgId: org.id,
          sealed: this.vault.seal(secret, { table: 'org_secrets', row: id, org: org.id }),
        });
        this.acts.tellCredentials(tx, org.id, { kind: 'user' });
        return { secret, graceSeconds };
      },
    );
  }

  revokeToken(ctx: CallContext, { jti, expiresAt }: RevokeToken): Promise<void> {
    return this.acts.admin.write(ctx, 'token.revoke', { jti }, async (tx) => {
      const until = expiresAt ? new Date(expiresAt) : new Date(systemClock.now() + 3_700_000);
      await tx.manager
        .getRepository(RevokedTokenEntity)
        .upsert({ orgId: ctx.org.id, jti, expiresAt: until }, ['orgId', 'jti']);
      this.acts.tellCredentials(tx, ctx.org.id, { tokenId: jti });
    });
  }

  keys(ctx: CallContext, { limit, cursor }: Paging): Promise<Page<KeyView>> {
    return this.acts.admin.read(ctx, 'key.list', async () => {
      const scope = `keys:${ctx.org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const query = this.orgs.manager
        .createQueryBuilder(ApiKeyEntity, 'key')
        .where('key.org_id = :org', { org: ctx.org.id })
        .orderBy('key.id')
        .limit(limit + 1);
      if (after !== undefined) query.andWhere('key.id > :after', { after });
      return pageOf(await query.getMany(), limit, keyView, (row) => this.cursors.encode(scope, [row.id]));
    });
  }

  createKey(ctx: CallContext, input: CreateKey): Promise<NewKeyView> {
    return this.acts.admin.write(ctx, 'key.create', { name: input.name, role: input.role }, (tx) =>
      this.insertKey(tx, ctx.org.id, input),
    );
  }

  revokeKey(ctx: CallContext, id: string): Promise<void> {
    return this.acts.admin.write(ctx, 'key.revoke', { key: id }, async (tx) => {
      const place = { id: id as KeyId, orgId: ctx.org.id };
      const key = isUuid(id) ? await tx.manager.findOneBy(ApiKeyEntity, place) : null;
      if (!key) throw new RialtoError('not_found', { message: 'no such key' });
      await tx.manager.update(ApiKeyEntity, place, { revokedAt: new Date(systemClock.now()) });
      this.acts.tellCredentials(tx, ctx.org.id, { caller: callerOf(holderOf(key)) });
    });
  }

  /** Returns the tool settings of an org, from memory, because every call reads them. */
  toolSettings(org: string): Promise<ToolSettings> {
    const known = this.settingsOf.peek(org);
    return known ? Promise.resolve(known) : this.settingsOf.get(org);
  }

  @OnNotice('org.changed')
  forget({ orgId }: { orgId: string }): void {
    this.settingsOf.expire(orgId);
  }

  /** Sets settings of an org. Writes nothing when they are already equal. */
  async adjust(tx: Tx, id: OrgId, wanted: Partial<ChangeOrg>): Promise<void> {
    const org = await tx.manager.findOneByOrFail(OrgEntity, { id });
    const differs = (Object.keys(wanted) as (keyof ChangeOrg)[]).some((key) => org[key] !== wanted[key]);
    if (!differs) return;
    await this.update(tx, id, wanted);
    this.acts.notices.tell(tx, 'org.changed', { orgId: id });
  }

  /** Returns an org that is not deleted. */
  async find(slug: string): Promise<OrgEntity | undefined> {
    return (await this.orgs.findOneBy({ slug, deletedAt: IsNull() })) ?? undefined;
  }

  async insert(tx: Tx, { slug, name }: CreateOrg): Promise<OrgEntity> {
    const id = newId<OrgId>();
    const orgs = tx.manager.getRepository(OrgEntity);
    try {
      await orgs.insert({ id, slug, name: name ?? slug });
    } catch (error) {
      if (isUniqueViolation(error)) throw new RialtoError('conflict', { message: `the org "${slug}" already exists` });
      throw error;
    }
    if (!this.settings.production) await this.policies.seedDevelopment(tx, id);
    this.acts.notices.tell(tx, 'org.changed', { orgId: id });
    return orgs.findOneByOrFail({ id });
  }

  async putMember(tx: Tx, orgId: OrgId, { sub, role, groups, active }: SaveMember): Promise<void> {
    const wanted = { orgId, sub, role, groups, active };
    const lock = { mode: 'pessimistic_write' } as const;
    const known = await tx.manager.findOne(MemberEntity, { where: { orgId, sub }, lock });
    await tx.manager.getRepository(MemberEntity).upsert(wanted, ['orgId', 'sub']);
    // A new member has no open streams, and an unchanged member keeps its streams.
    const isChanged =
      known &&
      Object.entries(wanted).some(([name, value]) => !isDeepStrictEqual(known[name as keyof MemberEntity], value));
    if (isChanged) this.acts.tellCredentials(tx, orgId, { caller: callerOf({ kind: 'user', id: sub }) });
  }

  async insertKey(
    tx: Tx,
    orgId: OrgId,
    { name, role, groups, agent, expiresAt }: CreateKey,
    key = `${apiKeyPrefix}${randomBytes(32).toString('base64url')}`,
  ): Promise<NewKeyView> {
    const row = {
      id: newId<KeyId>(),
      orgId,
      name,
      role,
      groups,
      agent: agent ?? null,
      secretHash: hashKey(key),
      hint: `${key.slice(0, 8)}…${key.slice(-4)}`,
      expiresAt: expiresAt ? new Date(expiresAt) : null,
      revokedAt: null,
    };
    await tx.manager.getRepository(ApiKeyEntity).insert(row);
    return { ...keyView({ ...row, createdAt: new Date(systemClock.now()) }), key };
  }

  /** Updates the given columns of an org that is not deleted. Changes by others to other columns stay. */
  private async update(tx: Tx, id: OrgId, columns: Partial<OrgEntity>): Promise<void> {
    const { affected } = await tx.manager.getRepository(OrgEntity).update({ id, deletedAt: IsNull() }, columns);
    if (affected === 0) throw new RialtoError('not_found', { message: 'no such org' });
  }

  private async requirePublished(org: OrgId, name: string | null | undefined): Promise<void> {
    if (typeof name !== 'string' || (await this.isPublished(org, name))) return;
    throw new RialtoError('invalid_params', {
      message: 'defaultAgent: names no published agent of this org',
      violations: [{ field: 'defaultAgent', description: 'names no published agent of this org' }],
    });
  }

  /** Returns an org that the caller may see. Throws `not_found`. */
  async visible(ctx: CallContext, slug: string): Promise<OrgEntity> {
    const org = slug === ctx.org.slug || runsDeployment(ctx) ? await this.find(slug) : undefined;
    if (!org) throw new RialtoError('not_found', { message: 'no such org' });
    return org;
  }
}

/** Returns whether a caller administers the deployment, and not only its own org. */
export function runsDeployment({ org, principal }: CallContext): boolean {
  return org.slug === defaultOrg && principal.role === 'admin';
}

function orgView({ id, slug, name, defaultAgent, toolTimeoutMs, toolNames, createdAt, updatedAt }: OrgEntity): OrgView {
  return {
    id,
    slug,
    name,
    defaultAgent,
    toolTimeoutMs,
    toolNames,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function memberView({ sub, role, groups, active, createdAt }: MemberEntity): MemberView {
  return { sub, role, groups, active, createdAt: createdAt.toISOString() };
}

function keyView({ id, name, role, groups, agent, hint, expiresAt, revokedAt, createdAt }: ApiKeyEntity): KeyView {
  return {
    id,
    name,
    role,
    groups,
    agent,
    hint,
    expiresAt: expiresAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  };
}
