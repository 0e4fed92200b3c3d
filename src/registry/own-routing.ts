import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { DispatchStore, type AgentRecord } from './dispatch/dispatch.store.js';
import type { PublishedAgent } from './published.types.js';
import { RegistryService, type AgentSnapshot } from './registry.service.js';
import { chanceOf, choose, type Candidate } from './routing/choose.js';
import { OfferIndexes, type Fit, type Wish } from './routing/fit.js';
import { noAgent } from './routing/no-agent.js';
import { weigh } from './routing/weight.js';

/** Metadata member of a task that states which agent was chosen for it, and why. */
export const dispatchMember = 'rialto/dispatch';

/** Returns the chosen skill from the metadata of a task that the gateway routed; undefined for other tasks. */
export function dispatchedSkill(metadata: JsonObject | undefined): string | undefined {
  const decided = metadata?.[dispatchMember];
  return isJsonObject(decided) && typeof decided.skillId === 'string' ? decided.skillId : undefined;
}

/** A published agent that may be chosen, or the reason why not. */
export interface OwnCandidate {
  readonly agent: PublishedAgent;
  readonly excluded?: string;
}

interface Suited extends Candidate {
  readonly agent: PublishedAgent;
  readonly skillId: string;
}

/** The chosen agent, and the metadata of the choice for its task. */
export interface OwnChoice {
  readonly agent: PublishedAgent;
  readonly facts: JsonObject;
}

/** Chooses the published agent for a message that names none (AN-89). */
@Injectable()
export class OwnRouting {
  private readonly offers = new OfferIndexes();

  constructor(
    private readonly registry: RegistryService,
    private readonly store: DispatchStore,
  ) {}

  /**
   * Chooses the agent with the skill that fits the message best. Among equal agents it uses health, load and a random
   * draw over the registered agents behind them. Throws `no_agent`.
   * @param seed of the random draw, so that a repeated message gets the same choice.
   */
  async choose(
    org: OrgId,
    wish: Wish,
    candidates: readonly OwnCandidate[],
    { seed = randomInt(2 ** 32), reason }: { readonly seed?: number; readonly reason?: string } = {},
  ): Promise<OwnChoice> {
    const [snapshot, records] = await Promise.all([this.registry.snapshot(org), this.store.records(org)]);
    const excluded: { agent: string; reason: string }[] = [];
    const offers = candidates.map(({ agent }) => agent);
    const fits = (await this.offers.of(org, offers)).fitsOf(wish);
    const suited = candidates.flatMap(({ agent, excluded: known }, index): Suited[] => {
      const found = known ?? appraise(agent, fits[index]!, snapshot, records);
      if (typeof found === 'object') return [found];
      excluded.push({ agent: agent.name, reason: found });
      return [];
    });
    const most = Math.max(...suited.map(({ fit }) => fit));
    const best = suited.filter(({ fit }) => fit === most);
    const { best: index, drawn } = choose(best, chanceOf(seed));
    const chosen = best[index];
    if (!chosen) throw noAgent(excluded, 'GET /a2a/agents lists what may be called by name');
    const { agent, skillId, fit } = chosen;
    const score = drawn[index]!.score;
    const because = reason ?? `its skill "${skillId}" suits the message best of ${candidates.length} agents`;
    return { agent, facts: { [dispatchMember]: { agent: agent.name, skillId, reason: because, fit, score, seed } } };
  }
}

function appraise(
  agent: PublishedAgent,
  fit: Fit,
  { byId, bySlug }: AgentSnapshot,
  records: ReadonlyMap<string, AgentRecord>,
): Suited | string {
  const { executor } = agent;
  const remote = executor.kind === 'remote' ? (byId.get(executor.agentId) ?? bySlug.get(executor.agentId)) : undefined;
  if (executor.kind === 'remote' && !remote) return 'the agent behind it is no longer registered';
  if (remote && remote.row.quarantinedAt !== null) return 'the changed card of the agent behind it waits for approval';
  if (!fit.ok) return `it lacks the skills: ${fit.missing.join(', ')}`;
  const { active, successes, failures } = (remote && records.get(remote.row.id)) ?? {
    active: 0,
    successes: 0,
    failures: 0,
  };
  const weight = weigh({ health: remote?.row.health ?? 'healthy', active });
  if (!weight.ok) return weight.reason;
  return { agent, skillId: fit.skillId, fit: fit.score, factors: weight.factors, successes, failures, cost: 0 };
}
