import { preparsePolicySet, statefulIsAuthorized, type AuthorizationAnswer } from '@cedar-policy/cedar-wasm/nodejs';
import { storableText } from '../../kernel/json.js';
import { inTurns } from '../../platform/jobs/in-turns.js';
import { actions, type Decision, type NeededApproval } from '../../kernel/verbs.js';
import { allOf, isAskable } from './ask-annotation.js';
import { builtinHints, type PolicyText } from './builtin.js';
import { cedarError, cedarLoss, guarded, isWellFormedDeep } from './cedar-guard.js';
import { includes } from './context-reads.js';
import { contextOf, entitiesOf, inputEntity, inputTags, principalUid, type PolicyCall } from './entities.js';
import { compiling, type PolicySet } from './policy-set.js';
import { messageOf } from './validate.js';

export interface PolicyDecision extends Decision {
  /** Errors of the evaluation; always empty for an allowed call. */
  readonly errors: readonly string[];
}

let engines = 0;

/**
 * Compiles policies and decides calls. Denies by default; any diagnostic of Cedar is a denial with that reason (RE-32,
 * RE-33). Cedar never frees a parsed set, it can only replace the set of an id. The engine therefore uses a limited
 * number of ids, and parses a set again when its id was given to another set.
 */
export class CedarEngine {
  private readonly name = `rialto-${++engines}`;
  /** Cedar's id for each set id, least recently used first. */
  private readonly slots = new Map<string, string>();
  private readonly free: string[] = [];
  private made = 0;

  /**
   * Creates an engine.
   * @param maxResident number of sets that stay parsed at the same time.
   */
  constructor(private readonly maxResident = 256) {}

  /** False after a trap in Cedar: every call is denied until the process restarts, and readiness should report it. */
  get healthy(): boolean {
    return cedarLoss() === undefined;
  }

  /** Number of sets that Cedar holds for this engine. */
  get resident(): number {
    return this.slots.size;
  }

  /** Number of ids that this engine ever gave to Cedar, which frees none; at most `maxResident`. */
  get idsMade(): number {
    return this.made;
  }

  /**
   * Compiles the built-in guards and these rows to a set. A broken row does not throw; it denies the calls that it
   * may concern.
   */
  compile(rows: readonly PolicyText[]): Promise<PolicySet> {
    return inTurns(this.preparing(rows));
  }

  /**
   * Compiles in pieces. Giving the set to Cedar is a separate piece, because it takes as long as the heaviest text;
   * it happens before the first decision.
   */
  private *preparing(rows: readonly PolicyText[]): Generator<void, PolicySet> {
    const set = yield* compiling(rows);
    yield;
    guarded<unknown>(
      () => this.residentId(set),
      (why) => why,
    );
    return set;
  }

  /** Frees the parsed set in Cedar. A later decision with the set parses it again. */
  releaseSet(set: PolicySet): void {
    if (set.withoutAsking) this.releaseSet(set.withoutAsking);
    const slot = this.slots.get(set.id);
    if (slot === undefined) return;
    this.slots.delete(set.id);
    this.free.push(slot);
    guarded<unknown>(
      () => preparsePolicySet(slot, { staticPolicies: {} }),
      (why) => why,
    );
  }

  /** Decides one call (RE-34). Allows it only when Cedar allows it and reports no error. */
  decide(set: PolicySet, call: PolicyCall): PolicyDecision {
    const broken = set.broken.filter((policy) => policy.actions?.has(call.action) ?? true);
    if (broken.length > 0) return { ...unevaluated(broken), version: set.version };
    const answer = guarded(() => this.authorize(set, call), failure);
    const needs = this.neededApproval(set, call, answer);
    return { ...readAnswer(set, answer), ...(needs && { needs }), version: set.version };
  }

  /**
   * Returns the approval that would permit a denied call: each policy that forbids it asks for an approval, and the
   * call is allowed without these policies.
   */
  private neededApproval(set: PolicySet, call: PolicyCall, answer: AuthorizationAnswer): NeededApproval | undefined {
    const { withoutAsking, asking } = set;
    if (!withoutAsking || !isAskable(call.action) || answer.type === 'failure') return undefined;
    const { decision, diagnostics } = answer.response;
    const needed = diagnostics.reason.map((id) => asking.get(id));
    const isOnlyMissing = decision === 'deny' && diagnostics.errors.length === 0 && needed.length > 0;
    if (!isOnlyMissing || !needed.every((one) => one !== undefined)) return undefined;
    return this.decide(withoutAsking, call).allowed ? allOf(needed) : undefined;
  }

  private authorize(set: PolicySet, call: PolicyCall): AuthorizationAnswer {
    const { type, id } = call.resource;
    if (actions[call.action]?.resource !== type) return failure(`${call.action} is not an act on ${type}`);
    const { attributes, tags: read } = set.reads;
    const input = includes(attributes, 'input') ? inputTags(call, read) : undefined;
    if (input?.unreadable[0] !== undefined) {
      return failure(
        `argument "${input.unreadable[0]}" is too long, has several values, ` +
          'or is above the number of arguments that a policy can read',
      );
    }
    const request = {
      principal: principalUid(call.principal),
      action: { type: 'Action', id: call.action },
      resource: { type, id },
      context: contextOf(call, attributes),
      entities: input ? [...entitiesOf(call), inputEntity(input.tags)] : entitiesOf(call),
    };
    if (!isWellFormedDeep(request)) return failure('the call contains text that is not well-formed Unicode');
    return statefulIsAuthorized({ ...request, preparsedPolicySetId: this.residentId(set), validateRequest: false });
  }

  private residentId(set: PolicySet): string {
    const known = this.slots.get(set.id);
    if (known !== undefined) {
      this.slots.delete(set.id);
      this.slots.set(set.id, known);
      return known;
    }
    const slot = this.takeSetId();
    const answer = preparsePolicySet(slot, { staticPolicies: set.sources });
    if (answer.type === 'failure') {
      this.free.push(slot);
      throw new Error(answer.errors.map(messageOf).join('; '));
    }
    this.slots.set(set.id, slot);
    return slot;
  }

  private takeSetId(): string {
    const spare = this.free.pop();
    if (spare !== undefined) return spare;
    const [oldest] = this.slots;
    if (oldest === undefined || this.slots.size < this.maxResident) return `${this.name}-${++this.made}`;
    this.slots.delete(oldest[0]);
    return oldest[1];
  }
}

type Answer = Omit<PolicyDecision, 'version'>;

function readAnswer(set: PolicySet, answer: AuthorizationAnswer): Answer {
  if (answer.type === 'failure') return undecided(answer.errors.map(messageOf).join('; '));
  const { decision, diagnostics } = answer.response;
  const nameOf = (id: string): string => set.names.get(id) ?? id;
  const failed = diagnostics.errors.map(({ policyId, error }) => ({ policy: nameOf(policyId), why: messageOf(error) }));
  if (failed.length > 0) return unevaluated(failed);
  const policies = diagnostics.reason.sort((left, right) => Number(left) - Number(right)).map(nameOf);
  const quoted = policies.map((name) => `"${name}"`).join(', ');
  if (decision === 'allow') return { allowed: true, policies, reason: `permitted by policy ${quoted}`, errors: [] };
  const reason = policies.length > 0 ? `forbidden by policy ${quoted}` : 'no permit matched';
  const hint = policies.length === 1 ? builtinHints.get(policies[0]!) : undefined;
  return { allowed: false, policies, reason, ...(hint !== undefined && { hint }), errors: [] };
}

function unevaluated(failed: readonly { policy: string; why: string }[]): Answer {
  const errors = failed.map(({ policy, why }) =>
    storableText(`policy "${policy}" could not be evaluated: ${why}`, 500),
  );
  const reason =
    errors.length > 3 ? `${errors.slice(0, 3).join('; ')}; and ${errors.length - 3} more` : errors.join('; ');
  return { allowed: false, policies: failed.map(({ policy }) => policy), reason, errors };
}

function undecided(why: string): Answer {
  const reason = storableText(`the decision could not be made: ${why}`, 500);
  return { allowed: false, policies: [], reason, errors: [reason] };
}

function failure(message: string): AuthorizationAnswer {
  return { type: 'failure', errors: [cedarError(message)], warnings: [] };
}
