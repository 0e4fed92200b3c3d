import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Act } from '../../kernel/verb-bus.js';
import type { Decision, ResourceRef } from '../../kernel/verbs.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { TurnBudget } from '../../platform/jobs/in-turns.js';
import { SnapshotCache } from '../../platform/database/snapshot-cache.js';
import type { PolicyText } from '../cedar/builtin.js';
import { CedarEngine } from '../cedar/cedar.js';
import { DecisionCache, decisionKey } from './decision-cache.js';
import { parentOf, type AgentFacts, type PolicyCall, type ToolFacts } from '../cedar/entities.js';
import { overweight, type PolicySet } from '../cedar/policy-set.js';
import { PolicyStore } from '../admin/policy.store.js';

/** Returns the facts about a registered agent that policies can read. The registry sets it at start. */
export type FactsSource = (orgId: string, slug: string) => AgentFacts | undefined | Promise<AgentFacts | undefined>;

/** Returns the facts about a tool of an MCP server, by its canonical name, as the caller sees it. */
export type ToolFactsSource = (
  ctx: CallContext,
  tool: string,
) => ToolFacts | undefined | Promise<ToolFacts | undefined>;

/** Decides acts by the policies of the caller's org. Uses caches while nothing changed. */
@Injectable()
export class PolicyDecider {
  readonly engine = new CedarEngine();
  private readonly decisions = new DecisionCache();
  /**
   * Splits many decisions over turns of the event loop: a list needs a decision for each entry, and with heavy
   * policies each takes 20 ms.
   */
  private readonly turn = new TurnBudget();
  private readonly sets: SnapshotCache<PolicySet>;
  private facts: FactsSource = () => undefined;
  private toolFacts: ToolFactsSource = () => undefined;

  constructor(store: PolicyStore) {
    this.sets = new SnapshotCache<PolicySet>({
      probe: (org) => store.version(org),
      load: async (org) => this.engine.compile(await store.findAll(org)),
      release: (set) => this.engine.releaseSet(set),
    });
  }

  factsFrom(source: FactsSource): void {
    this.facts = source;
  }

  toolFactsFrom(source: ToolFactsSource): void {
    this.toolFacts = source;
  }

  /** Decides an act for the verb bus. */
  decideAct(act: Act): Promise<Decision> | Decision {
    const org = act.ctx.org.id;
    const set = this.sets.peek(org) ?? this.sets.get(org);
    const call = this.policyCallOf(act);
    if (set instanceof Promise || call instanceof Promise)
      return Promise.all([set, call]).then(([found, known]) => this.decideInTurn(found, known));
    return this.decideInTurn(set, call);
  }

  private decideInTurn(set: PolicySet, call: PolicyCall): Promise<Decision> | Decision {
    return this.turn.wait?.then(() => this.decideInTurn(set, call)) ?? this.decideCall(set, call);
  }

  /**
   * Decides a call, without an act. For a quarantined tool that the caller may not call anyway it returns that
   * denial, so that the caller learns nothing about the tool.
   */
  decideCall(set: PolicySet, call: PolicyCall): Decision {
    const decision = this.cachedDecision(set, call);
    if (decision.allowed || !call.tool?.quarantined) return decision;
    const withoutTool = this.cachedDecision(set, { ...call, tool: undefined });
    return withoutTool.allowed || withoutTool.needs ? decision : withoutTool;
  }

  private cachedDecision(set: PolicySet, call: PolicyCall): Decision {
    const key = decisionKey(set, call);
    const known = key === undefined ? undefined : this.decisions.get(key);
    if (known) return known;
    const decision = this.turn.spend(() => this.engine.decide(set, call));
    if (key !== undefined) this.decisions.set(key, decision);
    return decision;
  }

  policySetOf(org: string): Promise<PolicySet> {
    return this.sets.get(org);
  }

  /**
   * Compiles a set that an org wants to use. Throws `unprocessable` for a set that is too heavy, unless it is lighter
   * than the current one.
   */
  async compileFor(org: string, rows: readonly PolicyText[]): Promise<PolicySet> {
    const set = await this.engine.compile(rows);
    const excess = overweight(set, await this.policySetOf(org));
    if (excess !== undefined) {
      const hint = 'remove policies, or use a group instead of naming its members';
      throw new RialtoError('unprocessable', { message: excess, hint });
    }
    return set;
  }

  factsOf(org: string, slug: string): Promise<AgentFacts | undefined> {
    return Promise.resolve(this.facts(org, slug));
  }

  toolFactsOf(ctx: CallContext, resource: ResourceRef): ToolFacts | undefined | Promise<ToolFacts | undefined> {
    return resource.type === 'Tool' ? this.toolFacts(ctx, resource.id) : undefined;
  }

  @OnNotice('policy.changed')
  expirePolicies({ orgId }: { orgId: string }): void {
    this.sets.expire(orgId);
  }

  private policyCallOf({ ctx, verb, action, resource, args, task, message }: Act): Promise<PolicyCall> | PolicyCall {
    const slug =
      resource.type === 'A2AAgent' ? resource.id : resource.type === 'Skill' ? parentOf(resource) : undefined;
    const agent = slug === undefined ? undefined : this.facts(ctx.org.id, slug);
    const tool = this.toolFactsOf(ctx, resource);
    const caller = ctx.principal.kind === 'agent' ? this.facts(ctx.org.id, ctx.principal.id) : undefined;
    const { principal, surface, depth } = ctx;
    const time = systemClock.now();
    const approved = ctx.approvedActions?.includes(verb) ?? false;
    const call = (...[callerFacts, agentFacts, toolFacts]: [AgentFacts?, AgentFacts?, ToolFacts?]): PolicyCall => {
      return {
        principal,
        caller: callerFacts,
        action,
        resource,
        agent: agentFacts,
        tool: toolFacts,
        task,
        surface,
        depth,
        time,
        args,
        approved,
        message,
      };
    };
    if (caller instanceof Promise || agent instanceof Promise || tool instanceof Promise)
      return Promise.all([caller, agent, tool]).then((known) => call(...known));
    return call(caller, agent, tool);
  }
}
