import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { OrgId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import type { Tx } from '../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { defaultOrg } from './auth.service.js';
import type { ChangeOrg, CreateOrg, OrgView } from './org.types.js';
import type { OrgEntity } from './orgs/org.entity.js';
import { OrgStore } from './orgs/org.store.js';
import type { TrustTier } from '../kernel/trust.js';
import { PolicyService } from './policy.service.js';

/** Settings for the tools of an org: its own, else those of the deployment. */
export interface ToolSettings {
  /** Time limit of a call to an agent without its own limit. */
  readonly timeoutMs: number;
  readonly names: 'portable' | 'canonical' | 'both';
}

interface OrgSettings extends ToolSettings {
  readonly trustTier: TrustTier;
}

type IsPublished = (org: OrgId, name: string) => Promise<boolean>;

/**
 * Administers orgs. Admins of the default org run the deployment; all others see only their own org.
 */
@Injectable()
export class OrgService {
  private readonly settingsOf = new SnapshotCache<OrgSettings>({
    probe: (id) => this.store.version(id as OrgId),
    load: async (id) => {
      const org = await this.store.findById(id as OrgId);
      return {
        timeoutMs: org?.toolTimeoutMs ?? this.settings.RIALTO_TOOL_TIMEOUT_MS,
        names: (org?.toolNames ?? this.settings.RIALTO_MCP_TOOL_NAMES) as ToolSettings['names'],
        trustTier: org?.trustTier ?? 0,
      };
    },
  });

  private isPublished: IsPublished = () => Promise.resolve(true);

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: OrgStore,
    private readonly policies: PolicyService,
    private readonly admin: AdminActs,
    private readonly cursors: Cursors,
  ) {}

  /** Sets the function that knows the published agents of an org. A module above this one calls it. */
  publishedFrom(ask: IsPublished): void {
    this.isPublished = ask;
  }

  list(ctx: CallContext, { limit, cursor }: { limit: number; cursor?: string }): Promise<Page<OrgView>> {
    return this.admin.read(ctx, 'org.list', async () => {
      const scope = `orgs:${ctx.org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const rows = await this.store.findPage(limit, after, runsDeployment(ctx) ? undefined : ctx.org.id);
      return pageOf(rows, limit, orgView, (row) => this.cursors.encode(scope, [row.slug]));
    });
  }

  get(ctx: CallContext, slug: string): Promise<OrgView> {
    return this.admin.read(ctx, 'org.get', async () => orgView(await this.visibleOrg(ctx, slug)));
  }

  create(ctx: CallContext, input: CreateOrg): Promise<OrgView> {
    return this.admin.write(ctx, 'org.create', { slug: input.slug }, async (tx) => {
      if (!runsDeployment(ctx))
        throw new RialtoError('denied', { message: `only admins of the org "${defaultOrg}" may create orgs` });
      return orgView(await this.insertOrg(tx, input));
    });
  }

  /** Changes an org. Throws `not_found`, `denied`, or `invalid_params` for a default agent that is not published. */
  change(ctx: CallContext, slug: string, input: ChangeOrg): Promise<OrgView> {
    const facts = { org: slug, fields: Object.keys(input) };
    return this.admin.prepareAndWrite(
      ctx,
      'org.change',
      facts,
      async () => {
        if (input.trustTier !== undefined && !runsDeployment(ctx))
          throw new RialtoError('denied', { message: `only admins of the org "${defaultOrg}" may set trust tiers` });
        const org = await this.visibleOrg(ctx, slug);
        await this.requirePublished(org.id, input.defaultAgent);
        return org;
      },
      async (tx, org) => orgView(await this.store.update(tx, org.id, input)),
    );
  }

  /**
   * Deletes an org. Its credentials stop at once; its data is deleted later (org-purge.sweeper.ts), its audit stays.
   */
  remove(ctx: CallContext, slug: string): Promise<void> {
    return this.admin.prepareAndWrite(
      ctx,
      'org.delete',
      { org: slug },
      () => this.visibleOrg(ctx, slug),
      async (tx, org) => {
        if (org.slug === defaultOrg)
          throw new RialtoError('unprocessable', { message: 'the default org cannot be deleted' });
        await this.store.delete(tx, org);
      },
    );
  }

  /** Returns the tool settings of an org, from memory, because every call reads them. */
  toolSettings(org: string): Promise<ToolSettings> {
    const known = this.settingsOf.peek(org);
    return known ? Promise.resolve(known) : this.settingsOf.get(org);
  }

  /** Returns the trust tier of an org, from memory. */
  async trustTier(org: OrgId): Promise<TrustTier> {
    return (this.settingsOf.peek(org) ?? (await this.settingsOf.get(org))).trustTier;
  }

  @OnNotice('org.changed')
  expireSettings({ orgId }: { orgId: string }): void {
    this.settingsOf.expire(orgId);
  }

  /**
   * Creates an org when it does not exist, and sets the given columns. Other processes that declare an org wait until
   * the transaction ends.
   */
  async declareOrg(tx: Tx, wanted: CreateOrg, columns: Partial<ChangeOrg> = {}): Promise<OrgEntity> {
    await this.store.lockDeclarations(tx);
    const org = (await this.store.find(wanted.slug, tx)) ?? (await this.insertOrg(tx, wanted));
    await this.store.updateDifferent(tx, org, columns);
    return org;
  }

  private async insertOrg(tx: Tx, { slug, name }: CreateOrg): Promise<OrgEntity> {
    const org = await this.store.insert(tx, slug, name ?? slug);
    if (!this.settings.production) await this.policies.seedDevelopment(tx, org.id);
    return org;
  }

  /** Returns an org that the caller may see. Throws `not_found`. */
  async visibleOrg(ctx: CallContext, slug: string): Promise<OrgEntity> {
    const org = slug === ctx.org.slug || runsDeployment(ctx) ? await this.store.find(slug) : undefined;
    if (!org) throw new RialtoError('not_found', { message: 'no such org' });
    return org;
  }

  private async requirePublished(org: OrgId, name: string | null | undefined): Promise<void> {
    if (typeof name !== 'string' || (await this.isPublished(org, name))) return;
    throw new RialtoError('invalid_params', {
      message: 'defaultAgent: names no published agent of this org',
      violations: [{ field: 'defaultAgent', description: 'names no published agent of this org' }],
    });
  }
}

/** Returns whether a caller administers the deployment, and not only its own org. */
export function runsDeployment({ org, principal }: CallContext): boolean {
  return org.slug === defaultOrg && principal.role === 'admin';
}

function orgView({ createdAt, updatedAt, ...org }: OrgEntity): OrgView {
  const { id, slug, name, defaultAgent, toolTimeoutMs, toolNames, trustTier } = org;
  return {
    id,
    slug,
    name,
    defaultAgent,
    toolTimeoutMs,
    toolNames,
    trustTier,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
