import { preparsePolicySet, statefulIsAuthorized, type AuthorizationAnswer } from '@cedar-policy/cedar-wasm/nodejs';
import { storableText } from '../../kernel/json.js';
import { inTurns } from '../../platform/jobs/in-turns.js';
import type { Decision } from '../../kernel/verb-bus.js';
import { actions } from '../../kernel/verbs.js';
import type { PolicyText } from './builtin.js';
import { cedarError, cedarLoss, guarded, isWellFormedDeep } from './cedar-guard.js';
import { includes } from './context-reads.js';
import { contextOf, entitiesOf, inputEntity, inputTags, principalUid, type PolicyCall } from './entities.js';
import { compiling, type PolicySet } from './policy-set.js';
import { messageOf } from './validate.js';

export interface PolicyDecision extends Decision {
  /** What could not be evaluated; always empty for an allowed call. */
  readonly errors: readonly string[];
}

let engines = 0;

/**
 * Compiles policies and decides by them: default deny, and any diagnostic is a denial that says so (D8, RE-32, RE-33).
 * Cedar keeps parsed sets under an id for ever, so the engine owns a bounded number of ids and parses a set again when
 * its id went to another.
 */
export class CedarEngine {
  private readonly name = `rialto-${++engines}`;
  /** Set id to the id Cedar knows it by, least recently used first. */
  private readonly slots = new Map<string, string>();
  private readonly free: string[] = [];
  private made = 0;

  /** `maxResident`: how many sets stay parsed at once. */
  constructor(private readonly maxResident = 256) {}

  /** False after a trap in Cedar: every call is denied until the process restarts, and readiness should say so. */
  get healthy(): boolean {
    return cedarLoss() === undefined;
  }

  /** How many sets Cedar holds for this engine. */
  get resident(): number {
    return this.slots.size;
  }

  /** How many ids this engine ever gave to Cedar, which forgets none: at most `maxResident`. */
  get idsMade(): number {
    return this.made;
  }

  /** Makes a set of the built-in guards and these rows; a broken row denies what it may be about instead of throwing. */
  compile(rows: readonly PolicyText[]): Promise<PolicySet> {
    return inTurns(this.preparing(rows));
  }

  /** Handing the set to Cedar takes as long as its heaviest text: a piece of its own, before anybody decides by it. */
  private *preparing(rows: readonly PolicyText[]): Generator<void, PolicySet> {
    const set = yield* compiling(rows);
    yield;
    guarded<unknown>(
      () => this.residence(set),
      (why) => why,
    );
    return set;
  }

  /** Frees what Cedar keeps of a set; a decision on it afterwards parses it again. */
  release(set: PolicySet): void {
    const slot = this.slots.get(set.id);
    if (slot === undefined) return;
    this.slots.delete(set.id);
    this.free.push(slot);
    guarded<unknown>(
      () => preparsePolicySet(slot, { staticPolicies: {} }),
      (why) => why,
    );
  }

  /** Decides one call (RE-34): allowed only when Cedar allows it and nothing at all went wrong. */
  decide(set: PolicySet, call: PolicyCall): PolicyDecision {
    const broken = set.broken.filter((policy) => policy.actions?.has(call.action) ?? true);
    if (broken.length > 0) return { ...unevaluated(broken), version: set.version };
    const answer = guarded(() => this.ask(set, call), failure);
    return { ...readAnswer(set, answer), version: set.version };
  }

  private ask(set: PolicySet, call: PolicyCall): AuthorizationAnswer {
    const { type, id } = call.resource;
    if (actions[call.action]?.resource !== type) return failure(`${call.action} is not an act on ${type}`);
    const { attributes, tags: read } = set.reads;
    const input = includes(attributes, 'input') ? inputTags(call.args, read) : undefined;
    if (input?.unreadable[0] !== undefined) {
      return failure(`argument "${input.unreadable[0]}" is too long, or one too many, for a policy to read`);
    }
    const request = {
      principal: principalUid(call.principal),
      action: { type: 'Action', id: call.action },
      resource: { type, id },
      context: contextOf(call, attributes),
      entities: input ? [...entitiesOf(call), inputEntity(input.tags)] : entitiesOf(call),
    };
    if (!isWellFormedDeep(request)) return failure('the call holds text that is not well-formed Unicode');
    return statefulIsAuthorized({ ...request, preparsedPolicySetId: this.residence(set), validateRequest: false });
  }

  private residence(set: PolicySet): string {
    const held = this.slots.get(set.id);
    if (held !== undefined) {
      this.slots.delete(set.id);
      this.slots.set(set.id, held);
      return held;
    }
    const slot = this.takeSlot();
    const answer = preparsePolicySet(slot, { staticPolicies: set.sources });
    if (answer.type === 'failure') {
      this.free.push(slot);
      throw new Error(answer.errors.map(messageOf).join('; '));
    }
    this.slots.set(set.id, slot);
    return slot;
  }

  private takeSlot(): string {
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
  return { allowed: false, policies, reason, errors: [] };
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
