import { withoutQuery } from '../../platform/secrets/url-queries.js';
import { parseExact } from '../../protocol/exact-integers.js';
import { normaliseCard, type NormalisedCard } from '../../protocol/a2a/card/card.js';
import { canonicalName, disambiguate, safeAlias } from '../../protocol/mcp/tool-names.js';
import { skillSchema } from '../../protocol/mcp/schema/tool-schema.js';
import type { AgentEntity } from './agent.entity.js';
import type { AgentView, RegisteredAgent, SkillTool } from '../registry.types.js';

export type { RegisteredAgent } from '../registry.types.js';

/**
 * Adds the parsed card and the tool names to each row. Pass all agents of an org: the older agent keeps a name that
 * two agents want. Yields between pieces, because a card may be large. Pure.
 * @param earlier the same agents at an earlier time, by id: rows that are the same object are not read again.
 */
export function* understand(
  rows: readonly AgentEntity[],
  earlier?: ReadonlyMap<string, RegisteredAgent>,
): Generator<void, RegisteredAgent[]> {
  const agents: RegisteredAgent[] = [];
  for (const row of rows) {
    const before = earlier?.get(row.id);
    const card = knownCard(row, before) ?? (yield* readingCard(row));
    const tools = toolsOf(row, card);
    agents.push(before?.row === row && before.tools === tools ? before : { row, card, tools });
    yield;
  }
  const aliases = agents.flatMap(({ tools }) => tools.map(({ alias }) => alias));
  return new Set(aliases).size === aliases.length ? agents : withDistinctAliases(agents);
}

// The names of a tool depend on other agents only when two want the same alias, which is rare.
const namedTools = new WeakMap<AgentEntity, readonly SkillTool[]>();

/** Returns the tools of an agent with the aliases that they have when no other tool has them. */
function toolsOf(row: AgentEntity, card: NormalisedCard | undefined): readonly SkillTool[] {
  let tools = namedTools.get(row);
  if (!tools) {
    tools = (card?.skills ?? []).map(({ id }) => {
      return { skillId: id, canonical: canonicalName(row.slug, id), alias: safeAlias(row.slug, id) };
    });
    namedTools.set(row, tools);
  }
  return tools;
}

/**
 * Returns the slugs of agents that may have a tool with the same alias as a tool of this agent: an alias begins with
 * the slug.
 */
export function rivalSlugs({ row, tools }: RegisteredAgent): string[] {
  const slugs = new Set<string>();
  for (const { alias } of tools) {
    const words = alias.split('_').slice(1);
    for (let count = 1; count < words.length; count++) slugs.add(words.slice(0, count).join('_'));
  }
  slugs.delete(row.slug);
  return [...slugs];
}

function withDistinctAliases(agents: readonly RegisteredAgent[]): RegisteredAgent[] {
  const oldestFirst = [...agents].sort((a, b) => a.row.createdAt.getTime() - b.row.createdAt.getTime());
  const named = disambiguate(
    oldestFirst.flatMap(({ row, tools }) =>
      tools.map((tool) => ({ tool, slug: row.slug, skillId: tool.skillId, since: row.skillsSince[tool.skillId] })),
    ),
  );
  const aliases = new Map(named.map(({ tool, alias }) => [tool, alias]));
  return agents.map((agent) => ({
    ...agent,
    tools: agent.tools.map((tool) => ({ ...tool, alias: aliases.get(tool)! })),
  }));
}

function knownCard(row: AgentEntity, earlier: RegisteredAgent | undefined): NormalisedCard | undefined {
  const isSame = earlier?.row.card === row.card && earlier.row.cardUrl === row.cardUrl;
  return isSame ? earlier.card : undefined;
}

function* readingCard({ card, cardUrl }: AgentEntity): Generator<void, NormalisedCard | undefined> {
  if (card === null) return undefined;
  const parsed = parseExact(card);
  yield;
  const normalised = normaliseCard(parsed, { url: cardUrl });
  return normalised.ok ? normalised.card : undefined;
}

/**
 * Returns when each skill of a card was first seen. Known skills keep their time, new ones get `now` (ms), removed
 * ones are dropped.
 */
export function seenSince(
  before: Readonly<Record<string, number>>,
  card: NormalisedCard,
  now: number,
): Record<string, number> {
  return Object.fromEntries(card.skills.map(({ id }) => [id, Object.hasOwn(before, id) ? before[id]! : now]));
}

/** Returns the facts about an agent that policies can read. */
export function factsOf({ row, card }: RegisteredAgent) {
  return {
    url: row.url,
    skills: card?.skills.map((skill) => skill.id) ?? [],
    trustLevel: row.trustLevel,
    quarantined: row.quarantinedAt !== null,
    version: `${row.id}:${row.updatedAt.getTime()}`,
  };
}

/** Returns the agent as the API shows it. Of a credential it shows only the kind and the last characters. */
export function agentView({ row, card, tools }: RegisteredAgent): AgentView {
  const names = new Map(tools.map((tool) => [tool.skillId, tool]));
  return {
    id: row.id,
    orgId: row.orgId,
    slug: row.slug,
    name: row.name,
    url: row.url,
    cardUrl: withoutQuery(row.cardUrl),
    trustLevel: row.trustLevel,
    timeoutMs: row.timeoutMs,
    health: row.health,
    reachable: row.health === 'healthy' || row.health === 'degraded',
    lastError: row.lastError,
    quarantine: row.quarantinedAt && { since: row.quarantinedAt.toISOString(), cardHash: row.cardHash ?? '' },
    signature: signatureOf(row),
    protocolVersions: [...(card?.protocolVersions ?? [])],
    bindings: [...new Set(card?.interfaces.map(({ binding }) => binding))],
    capabilities: {
      streaming: card?.capabilities.streaming ?? false,
      pushNotifications: card?.capabilities.pushNotifications ?? false,
      extendedAgentCard: card?.capabilities.extendedAgentCard ?? false,
    },
    costPerTask: card?.costPerTask ?? null,
    credential: row.credentialKind === null ? null : { type: row.credentialKind, hint: row.credentialHint ?? '' },
    skills: (card?.skills ?? []).map(({ id, name, description, tags, inputSchema }) => ({
      id,
      name,
      description,
      tags: [...tags],
      toolName: names.get(id)?.canonical ?? canonicalName(row.slug, id),
      alias: names.get(id)?.alias ?? '',
      problem: skillSchema(inputSchema).refusal ?? null,
    })),
    card: card
      ? {
          name: card.name,
          url: row.url,
          version: card.version,
          description: card.description,
          skills: [...card.skills],
        }
      : null,
    lastFetchedAt: row.lastFetchedAt?.toISOString() ?? null,
    lastSeenAt: row.lastSeenAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

function signatureOf({ signature, pinnedKey }: AgentEntity): AgentView['signature'] {
  return {
    state: signature?.state ?? 'unchecked',
    keyThumbprint: signature?.key?.thumbprint ?? null,
    pinnedThumbprint: pinnedKey?.thumbprint ?? null,
    reason: signature?.reason ?? null,
  };
}
