import { Injectable } from '@nestjs/common';
import type { CallContext, Principal, Role } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import type { Action, ResourceType } from '../kernel/verbs.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { PolicyStore } from './admin/policy.store.js';
import { validText } from './admin/policy-text.js';
import { CredentialStore } from './auth/credential.store.js';
import { parentOf, type PolicyCall } from './cedar/entities.js';
import { parseEntityLiteral } from './cedar/entity-literal.js';
import { PolicyDecider } from './decisions/policy-decider.js';
import type { TestPolicy, TestResult } from './policy.types.js';

const kindOfType: Record<string, Principal['kind']> = {
  User: 'user',
  A2AAgent: 'agent',
  Service: 'service',
  Anonymous: 'anonymous',
};

/** Answers questions about the policies of an org, without an act. */
@Injectable()
export class PolicyTestService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PolicyStore,
    private readonly decider: PolicyDecider,
    private readonly credentials: CredentialStore,
  ) {}

  /** Tests a question: the decision, and which policy made it. No act runs or is recorded. */
  test(ctx: CallContext, question: TestPolicy): Promise<TestResult> {
    return this.admin.read(ctx, 'policy.test', async () => {
      if (question.text !== undefined && ctx.principal.role !== 'admin')
        throw new RialtoError('denied', { message: 'only admins may test a policy text' });
      const call = await this.policyCall(ctx, question);
      const set =
        question.text === undefined
          ? await this.decider.policySetOf(ctx.org.id)
          : await this.decider.compileFor(ctx.org.id, [
              ...(await this.store.findAll(ctx.org.id)),
              { name: 'tested', text: await validText('tested', question.text) },
            ]);
      const { allowed, needs, policies, reason, version } = this.decider.decideCall(set, call);
      const answer = { policies: [...policies], version };
      if (!needs) return { decision: allowed ? 'allow' : 'deny', reason, ...answer };
      const asking = policies.map((name) => `"${name}"`).join(', ');
      return {
        decision: 'ask',
        reason: `approval required by policy ${asking}`,
        approvers: [...needs.groups],
        ...answer,
      };
    });
  }

  private async policyCall(ctx: CallContext, question: TestPolicy): Promise<PolicyCall> {
    const principal = literal(question.principal, 'principal');
    const action = literal(question.action.includes('::') ? question.action : `Action::"${question.action}"`, 'action');
    const resource = literal(question.resource, 'resource');
    const kind = kindOfType[principal.type];
    if (!kind) {
      const description = 'must be a User, A2AAgent, Service or Anonymous';
      throw new RialtoError('invalid_params', { violations: [{ field: 'principal', description }] });
    }
    const member = kind === 'user' ? await this.credentials.findMember(ctx.org.id, principal.id, undefined) : undefined;
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
      message: question.encrypted && {
        encrypted: true,
        encryptedBytes: question.encrypted.bytes,
        trustTier: question.encrypted.trustTier,
      },
    };
  }
}

function literal(text: string, field: string): { type: string; id: string } {
  const parsed = parseEntityLiteral(text, field);
  if (!parsed.ok) throw new RialtoError('invalid_params', { violations: [...parsed.violations] });
  return parsed.value;
}
