import { Injectable } from '@nestjs/common';
import type { CallContext, Principal, Role } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError, type Violation } from '../kernel/errors.js';
import { newId, type OrgId, type PolicyId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { Action, ResourceType } from '../kernel/verbs.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { Notices } from '../platform/bus/notices.js';
import { isUniqueViolation } from '../platform/database/pg.js';
import type { Tx } from '../platform/database/tx.js';
import { inTurns } from '../platform/jobs/in-turns.js';
import { Cursors, pageOf, type Page } from '../platform/http/cursor.js';
import { CredentialStore } from './auth/credential.store.js';
import { developmentPolicy, reservedPrefix, type PolicyText } from './cedar/builtin.js';
import { parseEntityLiteral } from './cedar/entity-literal.js';
import { parentOf, type PolicyCall } from './cedar/entities.js';
import { PolicyDecider, type FactsSource, type ToolFactsSource } from './decisions/policy-decider.js';
import type { PolicyEntity } from './admin/policy.entity.js';
import { overweight, type PolicySet } from './cedar/policy-set.js';
import { PolicyStore } from './admin/policy.store.js';
import type {
  PolicyVersionView,
  PolicyView,
  ReplacePolicy,
  SavePolicy,
  TestPolicy,
  TestResult,
} from './policy.types.js';
import { renderTemplate } from './cedar/templates.js';
import { validatingPolicyText } from './cedar/validate.js';

const maxPerOrg = 500;
const kindOfType: Record<string, Principal['kind']> = {
  User: 'user',
  A2AAgent: 'agent',
  Service: 'service',
  Anonymous: 'anonymous',
};

/** Stores, versions, validates and tests the policies of orgs. */
@Injectable()
export class PolicyService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PolicyStore,
    private readonly decider: PolicyDecider,
    private readonly credentials: CredentialStore,
    private readonly notices: Notices,
    private readonly cursors: Cursors,
  ) {}

  list(ctx: CallContext, { limit, cursor }: { limit: number; cursor?: string }): Promise<Page<PolicyView>> {
    return this.admin.read(ctx, 'policy.list', async () => {
      const scope = `policies:${ctx.org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      return pageOf(await this.store.findPage(ctx.org.id, limit, after), limit, viewOf, (row) =>
        this.cursors.encode(scope, [row.name]),
      );
    });
  }

  get(ctx: CallContext, id: string): Promise<PolicyView> {
    return this.admin.read(ctx, 'policy.get', async () => viewOf(await this.existing(ctx, id)));
  }

  versions(ctx: CallContext, id: string): Promise<Page<PolicyVersionView>> {
    return this.admin.read(ctx, 'policy.versions', async () => {
      const rows = await this.store.findVersions((await this.existing(ctx, id)).id);
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
      () => this.accept(ctx, input, undefined),
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
        return this.write(tx, row, ctx.principal.id);
      },
    );
  }

  /** Stores a new version under the same id. */
  replace(ctx: CallContext, id: string, input: ReplacePolicy): Promise<PolicyView> {
    const prepare = async () => {
      const row = await this.existing(ctx, id);
      return { row, text: await this.accept(ctx, { ...input, name: input.name ?? row.name }, row) };
    };
    return this.admin.prepareAndWrite(ctx, 'policy.replace', { policy: id }, prepare, async (tx, { row, text }) => {
      const current = await this.locked(tx, row);
      const version = current.version + 1;
      const changed = { ...current, name: input.name ?? current.name, text, template: input.template ?? null, version };
      return this.write(tx, { ...changed, updatedAt: new Date(systemClock.now()) }, ctx.principal.id);
    });
  }

  remove(ctx: CallContext, id: string): Promise<void> {
    const prepare = () => this.existing(ctx, id);
    return this.admin.prepareAndWrite(ctx, 'policy.delete', { policy: id }, prepare, async (tx, row) => {
      await this.store.delete(tx, (await this.locked(tx, row)).id);
    });
  }

  /** Tests a question: the decision, and which policy made it. No act runs or is recorded. */
  test(ctx: CallContext, question: TestPolicy): Promise<TestResult> {
    return this.admin.read(ctx, 'policy.test', async () => {
      if (question.text !== undefined && ctx.principal.role !== 'admin')
        throw new RialtoError('denied', { message: 'only admins may test a policy text' });
      const call = await this.callOf(ctx, question);
      const set =
        question.text === undefined
          ? await this.decider.setOf(ctx.org.id)
          : await this.compiled(ctx, [
              ...(await this.store.findAll(ctx.org.id)),
              { name: 'tested', text: await validText('tested', question.text) },
            ]);
      const { allowed, policies, reason, version } = this.decider.ask(set, call);
      return { decision: allowed ? 'allow' : 'deny', policies: [...policies], reason, version };
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
    await this.write(
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
      await this.write(
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
  private async locked(tx: Tx, { id, orgId }: PolicyEntity): Promise<PolicyEntity> {
    await this.markChanged(tx, orgId);
    const row = await this.store.reread(tx, id);
    if (!row) throw new RialtoError('not_found', { message: 'no such policy' });
    return row;
  }

  /** Stores a row, under the lock of its org. */
  private async write(tx: Tx, row: PolicyEntity, by: string): Promise<PolicyView> {
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
    return viewOf(row);
  }

  private async markChanged(tx: Tx, orgId: OrgId): Promise<void> {
    await this.store.raiseVersion(tx, orgId);
    this.notices.tell(tx, 'policy.changed', { orgId });
  }

  private async existing(ctx: CallContext, id: string): Promise<PolicyEntity> {
    const row = await this.store.find(ctx.org.id, id);
    if (!row) throw new RialtoError('not_found', { message: 'no such policy' });
    return row;
  }

  /** Returns the text to store. Refuses a text that denies its author the administration. */
  private async accept(ctx: CallContext, input: SavePolicy, replaced: PolicyEntity | undefined): Promise<string> {
    const text = await validText(input.name, input.text ?? rendered(input.template!));
    const others = (await this.store.findAll(ctx.org.id)).filter(({ id }) => id !== replaced?.id);
    if (others.length >= maxPerOrg)
      throw new RialtoError('unprocessable', {
        message: `the org already has ${maxPerOrg} policies, which is the maximum`,
      });
    const set = await this.compiled(ctx, [...others, { name: input.name, text }]);
    const decision = this.decider.engine.decide(set, adminCall(ctx));
    this.decider.engine.release(set);
    if (!decision.allowed) {
      throw new RialtoError('policy_invalid', {
        message: `this policy would deny you the administration of this org: ${decision.reason}`,
        hint: 'exclude yourself or Group::"admin" from the policy',
      });
    }
    return text;
  }

  /**
   * Compiles the set. Throws `unprocessable` for a set that is too heavy, unless it is lighter than the current one.
   */
  private async compiled(ctx: CallContext, rows: readonly PolicyText[]): Promise<PolicySet> {
    const set = await this.decider.engine.compile(rows);
    const excess = overweight(set, await this.decider.setOf(ctx.org.id));
    if (excess !== undefined) {
      const hint = 'remove policies, or use a group instead of naming its members';
      throw new RialtoError('unprocessable', { message: excess, hint });
    }
    return set;
  }

  private async callOf(ctx: CallContext, question: TestPolicy): Promise<PolicyCall> {
    const principal = literal(question.principal, 'principal');
    const action = literal(question.action.includes('::') ? question.action : `Action::"${question.action}"`, 'action');
    const resource = literal(question.resource, 'resource');
    const kind = kindOfType[principal.type];
    if (!kind) {
      const description = 'must be a User, A2AAgent, Service or Anonymous';
      throw new RialtoError('invalid_params', { violations: [{ field: 'principal', description }] });
    }
    const member = kind === 'user' ? await this.credentials.member(ctx.org.id, principal.id, undefined) : undefined;
    const role: Role = question.role ?? member?.role ?? 'member';
    const ref = { type: resource.type as ResourceType, id: resource.id };
    const slug = ref.type === 'A2AAgent' ? ref.id : ref.type === 'Skill' ? parentOf(ref) : undefined;
    return {
      principal: { kind, id: principal.id, role, groups: question.groups ?? member?.groups ?? [] },
      caller: kind === 'agent' ? await this.decider.factsOf(ctx.org.id, principal.id) : undefined,
      action: action.id as Action,
      resource: ref,
      agent: slug === undefined ? undefined : await this.decider.factsOf(ctx.org.id, slug),
      tool: await this.decider.toolFactsOf(ctx, ref),
      surface: 'mcp',
      depth: 0,
      time: systemClock.now(),
      args: question.input as JsonObject | undefined,
    };
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

function rendered(template: NonNullable<SavePolicy['template']>): string {
  const text = renderTemplate(template.id, template.inputs);
  if (!text.ok) throw invalid([...text.violations]);
  return text.value;
}

/** Adds the file and the name of the policy to an error that stops the start (P16). */
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

async function validText(name: string, text: string): Promise<string> {
  const violations = name.startsWith(reservedPrefix)
    ? [{ field: 'name', description: `names must not begin with ${reservedPrefix}` }]
    : await inTurns(validatingPolicyText(name, text));
  if (violations.length > 0) throw invalid(violations);
  return text;
}

function literal(text: string, field: string): { type: string; id: string } {
  const parsed = parseEntityLiteral(text, field);
  if (!parsed.ok) throw new RialtoError('invalid_params', { violations: [...parsed.violations] });
  return parsed.value;
}

function invalid(violations: Violation[]): RialtoError {
  return new RialtoError('policy_invalid', {
    message: violations
      .map(({ field, description }) => `${field}: ${description}`)
      .join('; ')
      .slice(0, 1_000),
    violations,
  });
}

function viewOf({ id, name, version, text, source, template, createdAt, updatedAt }: PolicyEntity): PolicyView {
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
