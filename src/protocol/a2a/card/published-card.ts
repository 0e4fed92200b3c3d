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

/** A skill with what decides who sees it; the three flags are never part of a card (AN-07). */
export interface PublishedSkill extends AgentSkill {
  /** False: for verified callers alone. */
  public?: boolean;
  requiresAuth?: boolean;
  isConsequential?: boolean;
}

/** Where callers reach an agent of ours, in one binding. */
export interface Door {
  readonly binding: Binding;
  /** Absolute; of gRPC `host:port`. */
  readonly url: string;
  readonly tenant?: string;
  /** The versions that it is offered in; absent: all that the agent speaks. */
  readonly versions?: readonly A2aVersion[];
}

/** All that the card of an agent of ours is made of. */
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

/** `public` is for anyone; `extended` for callers whom the agent's org knows (v1.0 section 3.1.11). */
export type CardVariant = 'public' | 'extended';

/** How a card is written: of one version, or with the members of both. */
export type CardForm = A2aVersion | 'hybrid';

/** Skills that stand for one user's or one org's private MCP servers (AN-05). */
const privateTool = /^mcp__(?:user|org)_/;
/** v1.0 doors before those of v0.3, because clients take the first one they speak (v1.0 section 8.3.2). */
const order: readonly A2aVersion[] = ['1.0', '0.3'];

/** The card of an agent of ours: one builder for every path, version and reader (C13). */
export function publishedCard(facts: CardFacts, variant: CardVariant): AgentCard {
  const { provider, documentationUrl, iconUrl } = facts;
  const schemes = Object.keys(facts.securitySchemes);
  return {
    name: facts.name,
    description: facts.description,
    supportedInterfaces: order.filter((version) => facts.versions.includes(version)).flatMap(facesOf(facts.doors)),
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

/** Whether anyone may know of a skill (AN-05…AN-07). */
export function isPublic({ id, public: open, requiresAuth, isConsequential }: PublishedSkill): boolean {
  return open !== false && !requiresAuth && !isConsequential && !privateTool.test(id);
}

/**
 * The form of a card for a reader. Who offers both versions is read by clients of either: a reader that asks for v1.0 by
 * `A2A-Version` gets it pure, every other one the members of both (v0.3 clients send no header).
 */
export function formOf(offered: readonly A2aVersion[], asked: string | undefined): CardForm {
  if (!offered.includes('0.3')) return '1.0';
  if (!offered.includes('1.0')) return '0.3';
  return versionOf(asked) === '1.0' ? '1.0' : 'hybrid';
}

/** The card as it is written, without signatures. */
export function encodeCard(card: AgentCard, form: CardForm): JsonObject {
  if (form === '1.0') return newer.encodeCard(card);
  if (form === '0.3') return older.encodeCard(card);
  return hybrid(newer.encodeCard(card), older.encodeCard(card));
}

/** Members that both versions have and shape differently carry both shapes; each reader ignores what it does not know. */
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

function facesOf(doors: readonly Door[]): (version: A2aVersion) => AgentInterface[] {
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
