import type { JsonObject } from '../../../kernel/json.js';
import type {
  A2aVersion,
  AgentCapabilities,
  AgentCard,
  AgentInterface,
  AgentProvider,
  AgentSkill,
  Binding,
  SecurityScheme,
} from '../model.js';
import { versionOf } from './negotiate.js';
import * as older from '../v03/card.js';
import * as newer from '../v1/card.js';

/** A skill with the flags that decide who can see it; the three flags are never part of a card (AN-07). */
export interface PublishedSkill extends AgentSkill {
  /** False: only verified callers can see the skill. */
  public?: boolean;
  requiresAuth?: boolean;
  isConsequential?: boolean;
}

/** An address where callers reach a published agent, in one binding. */
export interface Door {
  readonly binding: Binding;
  /** Absolute; for gRPC `host:port`. */
  readonly url: string;
  readonly tenant?: string;
  /** The versions offered at this address; absent: all versions of the agent. */
  readonly versions?: readonly A2aVersion[];
}

/** All data that the card of a published agent is built from. */
export interface CardFacts {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly provider?: AgentProvider;
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  /** In order of preference. */
  readonly doors: readonly Door[];
  readonly versions: readonly A2aVersion[];
  readonly capabilities: AgentCapabilities;
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly skills: readonly PublishedSkill[];
}

/** `public` is for everyone; `extended` is for callers that the agent's org knows (v1.0 section 3.1.11). */
export type CardVariant = 'public' | 'extended';

/** The form of a written card: one version, or the members of both. */
export type CardForm = A2aVersion | 'hybrid';

/** Ids of skills that represent private MCP servers of one user or one org (AN-05). */
const privateTool = /^mcp__(?:user|org)_/;
/** v1.0 doors come before those of v0.3, because clients take the first one that they support (v1.0 section 8.3.2). */
const order: readonly A2aVersion[] = ['1.0', '0.3'];

/** Builds the card of a published agent: the only builder, for every path, version and reader. */
export function publishedCard(facts: CardFacts, variant: CardVariant): AgentCard {
  const { provider, documentationUrl, iconUrl } = facts;
  const schemes = Object.keys(facts.securitySchemes);
  return {
    name: facts.name,
    description: facts.description,
    supportedInterfaces: order.filter((version) => facts.versions.includes(version)).flatMap(interfacesOf(facts.doors)),
    ...(provider && { provider }),
    version: facts.version,
    ...(documentationUrl !== undefined && { documentationUrl }),
    capabilities: facts.capabilities,
    ...(schemes.length > 0 && {
      securitySchemes: facts.securitySchemes,
      securityRequirements: schemes.map((scheme) => ({ schemes: { [scheme]: { list: [] } } })),
    }),
    defaultInputModes: [...facts.inputModes],
    defaultOutputModes: [...facts.outputModes],
    skills: facts.skills.filter((skill) => variant === 'extended' || isPublic(skill)).map(withoutFlags),
    ...(iconUrl !== undefined && { iconUrl }),
  };
}

/** True when everyone may know of the skill (AN-05…AN-07). */
export function isPublic({ id, public: isListed, requiresAuth, isConsequential }: PublishedSkill): boolean {
  return isListed !== false && !requiresAuth && !isConsequential && !privateTool.test(id);
}

/**
 * Chooses the form of a card for a reader. An agent that offers both versions has readers of both: a reader that asks
 * for v1.0 with `A2A-Version` gets the pure v1.0 form, every other reader the hybrid (v0.3 clients send no header).
 */
export function formOf(offered: readonly A2aVersion[], asked: string | undefined): CardForm {
  if (!offered.includes('0.3')) return '1.0';
  if (!offered.includes('1.0')) return '0.3';
  return versionOf(asked) === '1.0' ? '1.0' : 'hybrid';
}

/** Encodes the card, without signatures. */
export function encodeCard(card: AgentCard, form: CardForm): JsonObject {
  if (form === '1.0') return newer.encodeCard(card);
  if (form === '0.3') return older.encodeCard(card);
  return hybrid(newer.encodeCard(card), older.encodeCard(card));
}

/**
 * Merges both versions. A member with a different shape in each has both shapes; each reader ignores the unknown one.
 */
function hybrid(v1: JsonObject, v03: JsonObject): JsonObject {
  const schemes = merged(v03.securitySchemes, v1.securitySchemes);
  return {
    ...v03,
    ...v1,
    capabilities: { ...(v03.capabilities as JsonObject), ...(v1.capabilities as JsonObject) },
    ...(schemes && { securitySchemes: schemes }),
  };
}

function merged(left: unknown, right: unknown): JsonObject | undefined {
  if (!left || !right) return undefined;
  const [first, second] = [left as Record<string, JsonObject>, right as Record<string, JsonObject>];
  return Object.fromEntries(Object.keys(first).map((name) => [name, { ...first[name], ...second[name] }]));
}

function interfacesOf(doors: readonly Door[]): (version: A2aVersion) => AgentInterface[] {
  return (protocolVersion) =>
    doors
      .filter(({ versions }) => versions?.includes(protocolVersion) ?? true)
      .map(({ binding, url, tenant }) => ({
        url,
        protocolBinding: binding,
        ...(tenant !== undefined && { tenant }),
        protocolVersion,
      }));
}

function withoutFlags({
  public: _open,
  requiresAuth: _auth,
  isConsequential: _acts,
  ...skill
}: PublishedSkill): AgentSkill {
  return skill;
}
