import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { newId, type OrgId, type PolicyId } from '../kernel/ids.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Notices } from '../platform/bus/notices.js';
import { isUniqueViolation } from '../platform/database/pg.js';
import type { Tx } from '../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { developmentPolicy, type PolicyText } from './cedar/builtin.js';
import type { PolicyCall } from './cedar/entities.js';
import { PolicyDecider, type FactsSource, type ToolFactsSource } from './decisions/policy-decider.js';
import type { PolicyEntity } from './admin/policy.entity.js';
import { PolicyStore } from './admin/policy.store.js';
import { rendered, validText } from './admin/policy-text.js';
import type { PolicyVersionView, PolicyView, ReplacePolicy, SavePolicy } from './policy.types.js';

const maxPerOrg = 500;

/** Stores, versions and validates the policies of orgs. */
@Injectable()
export class PolicyService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PolicyStore,
    private readonly decider: PolicyDecider,
    private readonly notices: Notices,
    private readonly cursors: Cursors,
  ) {}

  list(ctx: CallContext, { limit, cursor }: { limit: number; cursor?: string }): Promise<Page<PolicyView>> {
    return this.admin.read(ctx, 'policy.list', async () => {
      const scope = `policies:${ctx.org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      return pageOf(await this.store.findPage(ctx.org.id, limit, after), limit, policyView, (row) =>
        this.cursors.encode(scope, [row.name]),
      );
    });
  }

  get(ctx: CallContext, id: string): Promise<PolicyView> {
    return this.admin.read(ctx, 'policy.get', async () => policyView(await this.findPolicy(ctx, id)));
  }

  versions(ctx: CallContext, id: string): Promise<Page<PolicyVersionView>> {
    return this.admin.read(ctx, 'policy.versions', async () => {
      const rows = await this.store.findVersions((await this.findPolicy(ctx, id)).id);
      const items = rows.map(({ version, name, text, createdBy, createdAt }) => ({
        version,
        name,
        text,
        createdBy,
        createdAt: createdAt.toISOString(),
      }));
      return { items, nextCursor: null };
    });
  }

  /**
   * Stores a new policy. Throws `policy_invalid` with the position of each problem, or `conflict` when the name is
   * taken.
   */
  create(ctx: CallContext, input: SavePolicy): Promise<PolicyView> {
    return this.admin.prepareAndWrite(
      ctx,
      'policy.create',
      { name: input.name },
      () => this.acceptText(ctx, input, undefined),
      async (tx, text) => {
        const now = new Date(systemClock.now());
        const row: PolicyEntity = {
          id: newId<PolicyId>(),
          orgId: ctx.org.id,
          name: input.name,
          version: 1,
          text,
          source: 'api',
          template: input.template ?? null,
          createdAt: now,
          updatedAt: now,
        };
        await this.markChanged(tx, ctx.org.id);
        return this.storePolicy(tx, row, ctx.principal.id);
      },
    );
  }

  /** Stores a new version under the same id. */
  replace(ctx: CallContext, id: string, input: ReplacePolicy): Promise<PolicyView> {
    const prepare = async () => {
      const row = await this.findPolicy(ctx, id);
      return { row, text: await this.acceptText(ctx, { ...input, name: input.name ?? row.name }, row) };
    };
    return this.admin.prepareAndWrite(ctx, 'policy.replace', { policy: id }, prepare, async (tx, { row, text }) => {
      const current = await this.lockPolicy(tx, row);
      const version = current.version + 1;
      const changed = { ...current, name: input.name ?? current.name, text, template: input.template ?? null, version };
      return this.storePolicy(tx, { ...changed, updatedAt: new Date(systemClock.now()) }, ctx.principal.id);
    });
  }

  remove(ctx: CallContext, id: string): Promise<void> {
    const prepare = () => this.findPolicy(ctx, id);
    return this.admin.prepareAndWrite(ctx, 'policy.delete', { policy: id }, prepare, async (tx, row) => {
      await this.store.delete(tx, (await this.lockPolicy(tx, row)).id);
    });
  }

  factsFrom(source: FactsSource): void {
    this.decider.factsFrom(source);
  }

  toolFactsFrom(source: ToolFactsSource): void {
    this.decider.toolFactsFrom(source);
  }

  /** Stores the only policy of a new development org. */
  async seedDevelopment(tx: Tx, org: OrgId): Promise<void> {
    const now = new Date(systemClock.now());
    await this.markChanged(tx, org);
    await this.storePolicy(
      tx,
      {
        id: newId<PolicyId>(),
        orgId: org,
        ...developmentPolicy,
        version: 1,
        source: 'seed',
        template: null,
        createdAt: now,
        updatedAt: now,
      },
      'rialto',
    );
  }

  /** Creates and updates the declared policies, and removes policies that are no longer declared. */
  async reconcile(tx: Tx, org: OrgId, declared: readonly PolicyText[]): Promise<void> {
    const before = await this.store.findAll(org);
    const same = declared.every(({ name, text }) => before.find((row) => row.name === name)?.text === text);
    if (same && before.every(({ source, name }) => source !== 'config' || declared.some((one) => one.name === name)))
      return;
    await this.markChanged(tx, org);
    const rows = await this.store.findAll(org);
    for (const { name, text } of declared) {
      const row = rows.find((known) => known.name === name);
      if (row?.text === text) continue;
      await validText(name, text).catch((error: unknown): never => {
        throw declaredWrong(name, error);
      });
      const now = new Date(systemClock.now());
      const base = row ?? { id: newId<PolicyId>(), orgId: org, createdAt: now, version: 0 };
      await this.storePolicy(
        tx,
        { ...base, name, text, template: null, source: 'config', version: base.version + 1, updatedAt: now },
        'rialto.config.json',
      );
    }
    for (const row of rows.filter(
      ({ source, name }) => source === 'config' && !declared.some((one) => one.name === name),
    )) {
      await this.store.delete(tx, row.id);
    }
  }

  /**
   * Locks the org first and then reads the current row. Throws `not_found` when the policy was removed in the
   * meantime.
   */
  private async lockPolicy(tx: Tx, { id, orgId }: PolicyEntity): Promise<PolicyEntity> {
    await this.markChanged(tx, orgId);
    const row = await this.store.reread(tx, id);
    if (!row) throw new RialtoError('not_found', { message: 'no such policy' });
    return row;
  }

  /** Stores a row, under the lock of its org. */
  private async storePolicy(tx: Tx, row: PolicyEntity, by: string): Promise<PolicyView> {
    try {
      await (row.version === 1 ? this.store.insert(tx, row, by) : this.store.update(tx, row, by));
    } catch (error) {
      if (isUniqueViolation(error, 'uq_policies_name'))
        throw new RialtoError('conflict', {
          message: `a policy named "${row.name}" exists`,
          hint: 'PUT /api/policies/{id} stores a new version of it',
        });
      throw error;
    }
    return policyView(row);
  }

  private async markChanged(tx: Tx, orgId: OrgId): Promise<void> {
    await this.store.raiseVersion(tx, orgId);
    this.notices.tell(tx, 'policy.changed', { orgId });
  }

  private async findPolicy(ctx: CallContext, id: string): Promise<PolicyEntity> {
    const row = await this.store.find(ctx.org.id, id);
    if (!row) throw new RialtoError('not_found', { message: 'no such policy' });
    return row;
  }

  /** Returns the text to store. Refuses a text that denies its author the administration. */
  private async acceptText(ctx: CallContext, input: SavePolicy, replaced: PolicyEntity | undefined): Promise<string> {
    const text = await validText(input.name, input.text ?? rendered(input.template!));
    const others = (await this.store.findAll(ctx.org.id)).filter(({ id }) => id !== replaced?.id);
    if (others.length >= maxPerOrg)
      throw new RialtoError('unprocessable', {
        message: `the org already has ${maxPerOrg} policies, which is the maximum`,
      });
    const set = await this.decider.compileFor(ctx.org.id, [...others, { name: input.name, text }]);
    const decision = this.decider.engine.decide(set, adminCall(ctx));
    this.decider.engine.releaseSet(set);
    if (!decision.allowed) {
      throw new RialtoError('policy_invalid', {
        message: `this policy would deny you the administration of this org: ${decision.reason}`,
        hint: 'exclude yourself or Group::"admin" from the policy',
      });
    }
    return text;
  }
}

function adminCall(ctx: CallContext): PolicyCall {
  const { principal, surface, depth, org } = ctx;
  return {
    principal,
    action: 'admin_write',
    resource: { type: 'Org', id: org.slug },
    surface,
    depth,
    time: systemClock.now(),
  };
}

/** Adds the file and the name of the policy to an error that stops the start. */
function declaredWrong(name: string, error: unknown): unknown {
  if (!(error instanceof RialtoError)) return error;
  const { code, message, hint, violations } = error;
  return new RialtoError(code, {
    message: `the configuration file: the policy "${name}": ${message}`,
    hint,
    violations,
    cause: error,
  });
}

function policyView({ id, name, version, text, source, template, createdAt, updatedAt }: PolicyEntity): PolicyView {
  return {
    id,
    name,
    version,
    text,
    source,
    template,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
