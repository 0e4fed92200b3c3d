import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import { containsUnstorable } from '../../json-text.js';
import { costPerTask } from './card-cost.js';
import {
  isUsable,
  isWithoutScheme,
  resolveInterfaces,
  type CardInterface,
  type ClaimedInterface,
} from '../card-interfaces.js';
import { readSkills, type CardSkill } from './card-skills.js';
import { member, objectMember, stringMember, stringsMember } from '../members.js';
import type { A2aVersion, AgentProvider, SecurityScheme } from '../model.js';
import * as older from '../v03/card.js';
import * as newer from '../v1/card.js';

export { contentHash, diffCards, type CardChange } from './card-diff.js';
export type { CardInterface } from '../card-interfaces.js';
export type { CardSkill } from './card-skills.js';

/** The card of a remote agent in the gateway's own form, the same for all card versions. */
export interface NormalisedCard {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Versions of the usable interfaces, in order of preference. */
  readonly protocolVersions: A2aVersion[];
  /** In order of preference. Urls are absolute; a gRPC address may be `host:port`. */
  readonly interfaces: CardInterface[];
  readonly capabilities: {
    readonly streaming: boolean;
    readonly pushNotifications: boolean;
    readonly extendedAgentCard: boolean;
  };
  readonly skills: CardSkill[];
  readonly defaultInputModes: string[];
  readonly defaultOutputModes: string[];
  /** In the v1.0 shape. */
  readonly securitySchemes: Record<string, SecurityScheme>;
  readonly provider?: AgentProvider;
  /** RE-61; see card-cost.ts for the accepted spellings. */
  readonly costPerTask?: number;
  readonly costCurrency?: string;
  /** URIs of the extensions that a caller must use; absent when there are none. */
  readonly requiredExtensions?: readonly string[];
}

/** `raw` is the card as it was received, with its unknown members. */
export type CardResult = { ok: true; card: NormalisedCard; raw: JsonObject } | { ok: false; violations: Violation[] };

const maxNameLength = 256;
const maxDescriptionLength = 16_384;
const maxListLength = 50;

/**
 * Reads the card of a remote agent: pure v1.0, v0.3, a hybrid with the keys of both, or an old agent.json; snake_case
 * too. It is strict about everything that a call needs (a name, ids of skills, a usable interface) and tolerant about
 * the rest. `url` is the address of the card or its agent; relative urls are resolved against it (v1.0 sections 4.4 and
 * 8, v0.3 section 5.5; RE-54, RE-60).
 */
export function normaliseCard(raw: unknown, { url }: { url: string }): CardResult {
  if (!isJsonObject(raw))
    return { ok: false, violations: [{ field: '', description: 'the card must be a JSON object' }] };
  const skills = readSkills(raw);
  const claims = [...newer.claimedInterfaces(raw), ...older.claimedInterfaces(raw)];
  const interfaces = resolveInterfaces(claims, url);
  const violations = [
    ...readName(raw),
    ...skills.violations,
    ...readInterfaces(raw, claims, interfaces),
    ...readText(raw),
  ];
  if (violations.length > 0) return { ok: false, violations };
  return { ok: true, card: build(raw, interfaces, skills.skills), raw };
}

function build(raw: JsonObject, interfaces: CardInterface[], skills: CardSkill[]): NormalisedCard {
  const capabilities = objectMember(raw, 'capabilities');
  const cost = costPerTask(raw);
  const provider = readProvider(raw);
  const requiredExtensions = readRequiredExtensions(capabilities);
  return {
    name: (stringMember(raw, 'name') ?? '').trim(),
    description: stringMember(raw, 'description') ?? '',
    version: stringMember(raw, 'version') ?? '',
    protocolVersions: [...new Set(interfaces.filter(isUsable).map((entry) => entry.version))],
    interfaces,
    capabilities: {
      streaming: member(capabilities, 'streaming') === true,
      pushNotifications: member(capabilities, 'pushNotifications') === true,
      extendedAgentCard: newer.hasExtendedCard(raw) || older.hasExtendedCard(raw),
    },
    skills,
    defaultInputModes: stringsMember(raw, 'defaultInputModes'),
    defaultOutputModes: stringsMember(raw, 'defaultOutputModes'),
    securitySchemes: readSecuritySchemes(raw),
    ...(provider && { provider }),
    ...(cost && { costPerTask: cost.amount }),
    ...(cost?.currency !== undefined && { costCurrency: cost.currency }),
    ...(requiredExtensions.length > 0 && { requiredExtensions }),
  };
}

function readRequiredExtensions(capabilities: JsonObject): string[] {
  const extensions = member(capabilities, 'extensions');
  const required = Array.isArray(extensions)
    ? extensions.filter(isJsonObject).filter((one) => one.required === true)
    : [];
  return required.flatMap((one) => stringMember(one, 'uri') ?? []);
}

function readName(raw: JsonObject): Violation[] {
  const name = stringMember(raw, 'name')?.trim();
  if (!name) return [{ field: '/name', description: 'must be a non-empty string' }];
  return name.length > maxNameLength
    ? [{ field: '/name', description: `is longer than ${maxNameLength} characters` }]
    : [];
}

function readInterfaces(
  raw: JsonObject,
  claims: readonly ClaimedInterface[],
  interfaces: readonly CardInterface[],
): Violation[] {
  const field = member(raw, 'supportedInterfaces') === undefined ? '/url' : '/supportedInterfaces';
  if (interfaces.length > maxListLength) return [{ field, description: `has more than ${maxListLength} interfaces` }];
  if (interfaces.some(isUsable)) return [];
  const bare = claims.map(({ url }) => url).find((url) => url !== undefined && isWithoutScheme(url));
  if (bare !== undefined)
    return [{ field, description: `"${bare.slice(0, 200)}" has no scheme; write it with https:// in front` }];
  return [{ field, description: 'must have an http or https url for A2A 1.0 or 0.x over JSONRPC, HTTP+JSON or GRPC' }];
}

function readText(raw: JsonObject): Violation[] {
  if (containsUnstorable(raw)) return [{ field: '', description: 'the card holds a NUL or a lone surrogate' }];
  const description = stringMember(raw, 'description') ?? '';
  if (description.length <= maxDescriptionLength) return [];
  return [{ field: '/description', description: `is longer than ${maxDescriptionLength} characters` }];
}

function readProvider(raw: JsonObject): AgentProvider | undefined {
  const provider = objectMember(raw, 'provider');
  const organization = stringMember(provider, 'organization');
  return organization === undefined ? undefined : { organization, url: stringMember(provider, 'url') ?? '' };
}

function readSecuritySchemes(raw: JsonObject): Record<string, SecurityScheme> {
  const schemes = Object.entries(objectMember(raw, 'securitySchemes')).flatMap(([name, scheme]) => {
    const read = isJsonObject(scheme) ? (newer.securityScheme(scheme) ?? older.securityScheme(scheme)) : undefined;
    return read ? [[name, read] as const] : [];
  });
  return Object.fromEntries(schemes);
}
