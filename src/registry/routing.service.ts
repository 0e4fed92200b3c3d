import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { newId, type ActId } from '../kernel/ids.js';
import type { Json, JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { SchemaChecks, type Violations } from '../platform/schemas/schema-checks.js';
import { keptJson } from '../platform/secrets/kept-json.js';
import { OrgService } from '../policy/org.service.js';
import { callerOf, graceMs } from './agents/agent-stats.recorder.js';
import { DispatchStore, type AgentRecord } from './dispatch/dispatch.store.js';
import type { CandidateView } from './dispatch.types.js';
import { RegistryService } from './registry.service.js';
import type { RegisteredAgent, SkillTool } from './registry.types.js';
import { chanceOf, choose } from './routing/choose.js';
import { fitOf, type Wish } from './routing/fit.js';
import { noAgent } from './routing/no-agent.js';
import { loadCaps, weigh, type Factors } from './routing/weight.js';

/** The wanted work and the arguments for the agent that does it. */
export interface WorkWish extends Wish {
  readonly args: JsonObject;
  /** A whole number below 2^32. The same seed makes the same choice from the same data. */
  readonly seed?: number;
}

/** An agent that can do the work, with the skill for it. */
interface Eligible {
  readonly agent: RegisteredAgent;
  readonly record: AgentRecord;
  readonly tool: SkillTool;
  readonly fit: number;
  readonly factors: Factors;
}

type Appraised =
  Eligible | { readonly agent: RegisteredAgent; readonly record: AgentRecord; readonly excluded: string };

/** Result of a choice. The same `seed` repeats it. */
export interface Choice {
  readonly seed: number;
  readonly chosen?: Pick<Eligible, 'agent' | 'tool'>;
  /**
   * The chosen agent first, then the others by score, then the excluded ones. Only agents that the caller may
   * discover.
   */
  readonly candidates: readonly CandidateView[];
}

/** A choice with a place that is taken for the call. `dispatchId` is the id of the call's act. */
export interface PlacedCall {
  readonly dispatchId: ActId;
  readonly seed: number;
  readonly agent: RegisteredAgent;
  readonly tool: SkillTool;
  readonly sessionId: string;
  readonly timeoutMs: number;
  readonly workType: string;
  readonly input: string;
  readonly candidate: CandidateView;
}

const noRecord: AgentRecord = { active: 0, successes: 0, failures: 0 };

/**
 * Chooses the registered agent that does some work best, among those that the caller may discover and call (RE-49).
 */
@Injectable()
export class RoutingService {
  constructor(
    private readonly registry: RegistryService,
    private readonly verbs: VerbBus,
    private readonly store: DispatchStore,
    private readonly orgs: OrgService,
    private readonly schemas: SchemaChecks,
  ) {}

  /** Returns the violations of a skill's input schema by the arguments. */
  violations({ org }: CallContext, { inputSchema }: { inputSchema?: Json }, args: JsonObject): Violations {
    return this.schemas.violations(org.id, inputSchema, args);
  }

  /**
   * Chooses an agent without taking a place.
   * @param full agents that had no free place in a previous attempt.
   */
  async choose(ctx: CallContext, wish: WorkWish, full: ReadonlySet<string> = new Set()): Promise<Choice> {
    const { seed = randomInt(2 ** 32) } = wish;
    const [{ agents }, records] = await Promise.all([
      this.registry.snapshot(ctx.org.id),
      this.store.records(ctx.org.id),
    ]);
    const isShown = await Promise.all(agents.map(({ row }) => this.registry.mayDiscover(ctx, row.slug)));
    const appraised = await Promise.all(
      agents
        .filter((_, index) => isShown[index])
        .map((agent) => {
          const record = records.get(agent.row.id) ?? noRecord;
          const active = full.has(agent.row.id) ? Math.max(record.active, loadCaps.hard) : record.active;
          return this.appraise(ctx, agent, { ...record, active }, wish);
        }),
    );
    return decide(appraised, seed, wish.costLimit !== undefined);
  }

  /**
   * Chooses an agent and takes a place with it, so that an agent never has more routed calls at once than its hard
   * cap, over all processes. Calls that name their agent count, but the cap does not limit them. Throws `no_agent`.
   */
  async place(ctx: CallContext, wish: WorkWish): Promise<PlacedCall> {
    const full = new Set<string>();
    let storedInput: string | undefined;
    for (let seed = wish.seed; ;) {
      const choice = await this.choose(ctx, { ...wish, seed }, full);
      seed = choice.seed;
      if (!choice.chosen) {
        const excluded = choice.candidates.map((one) => ({ agent: one.agent.slug, reason: one.excluded }));
        throw noAgent(excluded, 'POST /api/a2a/dispatch/explain shows every agent and the reason for its exclusion');
      }
      const { agent, tool } = choice.chosen;
      const dispatchId = newId<ActId>();
      const input = (storedInput ??= keptJson(wish.args));
      const timeoutMs = agent.row.timeoutMs ?? (await this.orgs.toolSettings(ctx.org.id)).timeoutMs;
      const place = {
        id: dispatchId,
        org: ctx.org.id,
        agentId: agent.row.id,
        agentName: agent.row.slug,
        verb: tool.canonical,
        skillId: tool.skillId,
        sessionId: `a2a-${agent.row.id}-${tool.skillId}-${dispatchId}`,
        workType: `transparent:${wish.workType}`,
        caller: callerOf(ctx),
        input,
        lastsMs: timeoutMs + graceMs,
      };
      const { sessionId, workType } = place;
      const [candidate] = choice.candidates as [CandidateView];
      if (await this.store.takePlace(place, loadCaps.hard))
        return { dispatchId, seed, agent, tool, sessionId, timeoutMs, workType, input, candidate };
      full.add(agent.row.id);
    }
  }

  /**
   * Assesses an agent. Checks without I/O come first; policies and schemas are checked only for the remaining agents.
   */
  private async appraise(
    ctx: CallContext,
    agent: RegisteredAgent,
    record: AgentRecord,
    wish: WorkWish,
  ): Promise<Appraised> {
    const { row, card, tools } = agent;
    const out = (excluded: string): Appraised => ({ agent, record, excluded });
    if (!card) return out('its card was not fetched yet');
    if (row.quarantinedAt !== null) return out('its changed card waits for approval');
    const fit = fitOf(wish, card);
    if (!fit.ok)
      return out(fit.missing.length > 0 ? `it lacks the skills: ${fit.missing.join(', ')}` : 'it has no skill');
    const { health } = row;
    const weight = weigh({ health, active: record.active, costPerTask: card.costPerTask }, wish.costLimit);
    if (!weight.ok) return out(weight.reason);
    const tool = tools.find(({ skillId }) => skillId === fit.skillId)!;
    const decision = await this.verbs.decide({
      ctx,
      verb: tool.canonical,
      action: 'a2a_invoke',
      resource: { type: 'Skill', id: tool.canonical, parent: row.slug },
      args: wish.args,
    });
    if (!decision.allowed) return out(`${tool.canonical} may not be called: ${decision.reason}`);
    const skill = card.skills.find(({ id }) => id === fit.skillId)!;
    const violations = await this.violations(ctx, skill, wish.args);
    if (violations.length > 0) return out(`the arguments do not fit the input schema of ${tool.canonical}`);
    return { agent, record, tool, fit: fit.score, factors: weight.factors };
  }
}

/** Draws among the agents that can do the work. Pure: `seed` determines the random numbers. */
function decide(appraised: readonly Appraised[], seed: number, preferCheaper: boolean): Choice {
  const eligible = appraised.filter((one): one is Eligible => 'tool' in one);
  const contenders = eligible.map(({ agent, record, fit, factors }) => ({
    ...record,
    fit,
    factors,
    cost: agent.card?.costPerTask ?? 0,
  }));
  const { best, drawn } = choose(contenders, chanceOf(seed), { preferCheaper });
  const views = new Map(eligible.map((one, index) => [one.agent, { ...candidateView(one), ...drawn[index] }]));
  const tooExpensive = 'another agent costs less and is no worse';
  const candidates = appraised.map((one): CandidateView => {
    if (!('tool' in one)) return { ...candidateView(one), excluded: one.excluded };
    const view = views.get(one.agent)!;
    return view.score === null ? { ...view, excluded: tooExpensive } : view;
  });
  return {
    seed,
    chosen: eligible[best],
    candidates: candidates.sort((a, b) => (b.score ?? -1) - (a.score ?? -1)),
  };
}

function candidateView(one: Appraised): CandidateView {
  const { row, card } = one.agent;
  const isEligible = 'tool' in one;
  return {
    agent: { id: row.id, slug: row.slug, name: row.name },
    health: row.health,
    active: one.record.active,
    successes: one.record.successes,
    failures: one.record.failures,
    costPerTask: card?.costPerTask ?? null,
    skillId: isEligible ? one.tool.skillId : null,
    fit: isEligible ? one.fit : null,
    factors: isEligible ? one.factors : null,
    sampled: null,
    score: null,
    excluded: null,
  };
}
