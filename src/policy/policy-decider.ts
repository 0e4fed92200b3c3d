import { Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { Act, Decision } from '../kernel/verb-bus.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { CedarEngine } from './cedar.js';
import { DecisionCache, decisionKey } from './decision-cache.js';
import { parentOf, type AgentFacts, type PolicyCall } from './entities.js';
import type { PolicySet } from './policy-set.js';
import { PolicyStore } from './policy.store.js';

/** Who knows what policies may know of a registered agent; the registry says so at start. */
export type FactsSource = (orgId: string, slug: string) => AgentFacts | undefined | Promise<AgentFacts | undefined>;

/** Decides acts by the policies of the caller's org, from caches where nothing changed. */
@Injectable()
export class PolicyDecider {
  readonly engine = new CedarEngine();
  private readonly decisions = new DecisionCache();
  private readonly sets: SnapshotCache<PolicySet>;
  private facts: FactsSource = () => undefined;

  constructor(store: PolicyStore) {
    this.sets = new SnapshotCache<PolicySet>({
      probe: (org) => store.version(org),
      load: async (org) => this.engine.compile(await store.findAll(org)),
      release: (set) => this.engine.release(set),
    });
  }

  factsFrom(source: FactsSource): void {
    this.facts = source;
  }

  /** The decider of the verb bus. */
  async decide(act: Act): Promise<Decision> {
    const org = act.ctx.org.id;
    const set = this.sets.peek(org) ?? (await this.sets.get(org));
    const call = await this.callOf(act);
    return this.ask(set, call);
  }

  /** Asks a set about a call, without an act. */
  ask(set: PolicySet, call: PolicyCall): Decision {
    const key = decisionKey(set, call);
    const known = key === undefined ? undefined : this.decisions.get(key);
    if (known) return known;
    const decision = this.engine.decide(set, call);
    if (key !== undefined) this.decisions.set(key, decision);
    return decision;
  }

  setOf(org: string): Promise<PolicySet> {
    return this.sets.get(org);
  }

  factsOf(org: string, slug: string): Promise<AgentFacts | undefined> {
    return Promise.resolve(this.facts(org, slug));
  }

  @OnNotice('policy.changed')
  forget({ orgId }: { orgId: string }): void {
    this.sets.expire(orgId);
  }

  private async callOf({ ctx, action, resource, args, task }: Act): Promise<PolicyCall> {
    const slug =
      resource.type === 'A2AAgent' ? resource.id : resource.type === 'Skill' ? parentOf(resource) : undefined;
    const agent = slug === undefined ? undefined : this.facts(ctx.org.id, slug);
    const caller = ctx.principal.kind === 'agent' ? this.facts(ctx.org.id, ctx.principal.id) : undefined;
    return {
      principal: ctx.principal,
      caller: caller instanceof Promise ? await caller : caller,
      action,
      resource,
      agent: agent instanceof Promise ? await agent : agent,
      task,
      surface: ctx.surface,
      depth: ctx.depth,
      time: systemClock.now(),
      args,
    };
  }
}
