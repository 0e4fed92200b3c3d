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
import { refusesCleartext } from './agent-encryption.js';
import type { RegisteredAgent, SkillTool } from './registry.types.js';
import { chanceOf, type Candidate } from './routing/choose.js';
import { Ranking, takeFirst, type Verdict } from './routing/ranking.js';
import { OfferIndexes, type Fit, type Offer, type Wish } from './routing/fit.js';
import { noAgent } from './routing/no-agent.js';
import { loadCaps, weigh } from './routing/weight.js';

/** The wanted work and the arguments for the agent that does it. */
export interface WorkWish extends Wish {
  readonly args: JsonObject;
  /** A whole number below 2^32. The same seed makes the same choice from the same data. */
  readonly seed?: number;
}

/** An agent that suits the work, with the skill for it. Policies may still forbid its use. */
interface Suited extends Candidate {
  readonly agent: RegisteredAgent;
  readonly record: AgentRecord;
  readonly tool: SkillTool;
}

type Appraised = Suited | { readonly agent: RegisteredAgent; readonly record: AgentRecord; readonly excluded: string };

/** Result of a choice. The same `seed` repeats it. */
export interface Choice {
  readonly seed: number;
  readonly chosen?: Pick<Suited, 'agent' | 'tool'>;
  /**
   * The chosen agent first, then the others by score, then the excluded ones; at most `maxCandidates`. Only agents that
   * the caller may discover.
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

/** Number of agents that an explanation names. */
const maxCandidates = 100;
const noCard: Offer = { description: '', skills: [] };
const noRecord: AgentRecord = { active: 0, successes: 0, failures: 0 };

/**
 * Chooses the registered agent that does some work best, among those that the caller may discover and call (RE-49).
 */
@Injectable()
export class RoutingService {
  private readonly offers = new OfferIndexes();

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

  /** Chooses an agent without taking a place, and explains the choice. */
  choose(ctx: CallContext, wish: WorkWish): Promise<Choice> {
    return this.compare(ctx, wish, maxCandidates);
  }

  /**
   * Chooses an agent and takes a place with it, so that an agent never has more routed calls at once than its hard
   * cap, over all processes. Calls that name their agent count, but the cap does not limit them. Throws `no_agent`.
   */
  async place(ctx: CallContext, wish: WorkWish): Promise<PlacedCall> {
    const full = new Set<string>();
    let storedInput: string | undefined;
    for (let seed = wish.seed; ;) {
      const choice = await this.compare(ctx, { ...wish, seed }, 1, full);
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
   * Compares all agents. Policies are asked, from the best agent down, until `most` may be chosen; fewer are completed
   * with excluded ones.
   * @param full agents that had no free place in a previous attempt.
   */
  private async compare(
    ctx: CallContext,
    wish: WorkWish,
    most: number,
    full: ReadonlySet<string> = new Set(),
  ): Promise<Choice> {
    const { seed = randomInt(2 ** 32), costLimit } = wish;
    const [{ agents }, records] = await Promise.all([
      this.registry.snapshot(ctx.org.id),
      this.store.records(ctx.org.id),
    ]);
    const cards = agents.map(({ card }) => card ?? noCard);
    const fits = (await this.offers.of(ctx.org.id, cards)).fitsOf(wish);
    const appraised = agents.map((agent, index) => {
      const record = records.get(agent.row.id) ?? noRecord;
      const isFull = full.has(agent.row.id);
      const known = isFull ? { ...record, active: Math.max(record.active, loadCaps.hard) } : record;
      return appraise(agent, known, fits[index]!, wish);
    });
    const ranking = new Ranking(appraised.filter(isSuited), (one) => this.judge(ctx, one, wish), {
      chance: chanceOf(seed),
      prefersCheaper: costLimit !== undefined,
    });
    const eligible = await takeFirst(ranking.ranked, most, async (one) =>
      (await ranking.verdictOf(one.entry)) === 'eligible' ? one : undefined,
    );
    const room = eligible.length === 0 ? maxCandidates : most - eligible.length;
    const excluded = await takeFirst(appraised, room, async (one) => {
      if (isSuited(one)) return excludedView(one, await ranking.verdictOf(one));
      return (await this.registry.mayDiscover(ctx, one.agent.row.slug)) ? excludedView(one, one) : undefined;
    });
    const views = eligible.map(({ entry, drawn }) => ({ ...suitedView(entry), ...drawn }));
    return { seed, chosen: eligible[0]?.entry, candidates: [...views, ...excluded] };
  }

  private async judge(ctx: CallContext, { agent: { row, card }, tool }: Suited, { args }: WorkWish): Promise<Verdict> {
    if (!(await this.registry.mayDiscover(ctx, row.slug))) return 'hidden';
    const { canonical, skillId } = tool;
    const resource = { type: 'Skill', id: canonical, parent: row.slug } as const;
    const decision = await this.verbs.decide({ ctx, verb: canonical, action: 'a2a_invoke', resource, args });
    if (!decision.allowed) return { excluded: `${canonical} may not be called: ${decision.reason}` };
    const skill = card!.skills.find(({ id }) => id === skillId)!;
    const violations = await this.violations(ctx, skill, args);
    if (violations.length === 0) return 'eligible';
    return { excluded: `the arguments do not fit the input schema of ${canonical}` };
  }
}

/** Assesses an agent by the facts that need no policy and no schema. */
function appraise(agent: RegisteredAgent, record: AgentRecord, fit: Fit, { args, costLimit }: WorkWish): Appraised {
  const { row, card, tools } = agent;
  const out = (excluded: string): Appraised => ({ agent, record, excluded });
  if (!card) return out('its card was not fetched yet');
  if (row.quarantinedAt !== null) return out('its changed card waits for approval');
  if (!fit.ok)
    return out(fit.missing.length > 0 ? `it lacks the skills: ${fit.missing.join(', ')}` : 'it has no skill');
  if (refusesCleartext(agent, [{ data: args }])) return out('it takes encrypted messages only');
  const { costPerTask } = card;
  const weight = weigh({ health: row.health, active: record.active, costPerTask }, costLimit);
  if (!weight.ok) return out(weight.reason);
  const tool = tools.find(({ skillId }) => skillId === fit.skillId)!;
  const { successes, failures } = record;
  return { agent, record, tool, fit: fit.score, factors: weight.factors, successes, failures, cost: costPerTask ?? 0 };
}

function isSuited(one: Appraised): one is Suited {
  return 'tool' in one;
}

/** Returns the view of an agent that may not be chosen; undefined for any other. */
function excludedView(one: Appraised, verdict: Verdict): CandidateView | undefined {
  if (verdict === 'beaten')
    return { ...suitedView(one as Suited), excluded: 'another agent costs less and is no worse' };
  return typeof verdict === 'object' ? { ...agentView(one), excluded: verdict.excluded } : undefined;
}

function suitedView(one: Suited): CandidateView {
  const { tool, fit, factors } = one;
  return { ...agentView(one), skillId: tool.skillId, fit, factors };
}

function agentView({ agent: { row, card }, record }: Appraised): CandidateView {
  const { active, successes, failures } = record;
  return {
    agent: { id: row.id, slug: row.slug, name: row.name },
    health: row.health,
    active,
    successes,
    failures,
    costPerTask: card?.costPerTask ?? null,
    skillId: null,
    fit: null,
    factors: null,
    sampled: null,
    score: null,
    excluded: null,
  };
}
