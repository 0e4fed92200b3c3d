import { z } from 'zod';
import { trustLevels } from '../kernel/trust.js';
import { framingHeaders, HeaderName, HeaderValue, Name } from '../platform/http/params.js';
import type { NormalisedCard } from '../protocol/a2a/card/card.js';
import type { AgentEntity } from './agents/agent.entity.js';
import { healths } from './agents/health.js';

const reservedHeaders = new Set([...framingHeaders, 'a2a-version', 'traceparent']);

/** Credential that the gateway sends to an agent. It is write-only: the API never shows it. */
export const Credential = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('bearer'), token: HeaderValue }),
  z.strictObject({
    type: z.literal('apiKey'),
    header: HeaderName.refine((name) => !reservedHeaders.has(name.toLowerCase()), { message: 'is a reserved header' }),
    value: HeaderValue,
  }),
  z.strictObject({
    type: z.literal('oauth2'),
    tokenUrl: z.url(),
    clientId: z.string().min(1).max(1_024),
    clientSecret: HeaderValue,
    scope: z.string().max(1_024).optional(),
  }),
]);
export type Credential = z.output<typeof Credential>;

const timeoutMs = z.number().int().min(100).max(3_600_000);
const agentSlug = z
  .string()
  .regex(/^[a-z0-9]+(?:_[a-z0-9]+)*$/, { message: 'must be lower-case letters and digits, words joined by _' })
  .max(63)
  .refine((slug) => !['a2a', 'mcp', 'agents', 'tasks', 'rialto'].includes(slug), { message: 'is reserved' });

/** Registration of an agent: its base URL, the URL of its card, or an old `agent.json` URL. */
export const RegisterAgent = z.strictObject({
  url: z.string().min(1).max(2_048),
  slug: agentSlug.optional(),
  trustLevel: z.enum(trustLevels).default('standard'),
  timeoutMs: timeoutMs.optional(),
  credential: Credential.optional(),
});
export type RegisterAgent = z.output<typeof RegisterAgent>;

export const ChangeAgent = z
  .strictObject({
    trustLevel: z.enum(trustLevels).optional(),
    timeoutMs: timeoutMs.nullable().optional(),
    credential: Credential.nullable().optional(),
  })
  .refine((change) => Object.keys(change).length > 0, { message: 'contains no member to change' });
export type ChangeAgent = z.output<typeof ChangeAgent>;

/** Approval of a changed card, by the hash of the reviewed card. */
export const ApproveCard = z.strictObject({ cardHash: z.string().max(100) });
export type ApproveCard = z.output<typeof ApproveCard>;

export const AgentQuery = z.strictObject({
  health: z.enum(healths).optional(),
  trustLevel: z.enum(trustLevels).optional(),
  q: Name.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type AgentQuery = z.output<typeof AgentQuery>;

const SkillView = z.object({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  toolName: z.string(),
  alias: z.string(),
  /** Reason why the skill is not listed as a tool: no arguments match its input schema. */
  problem: z.string().nullable(),
});

/** A registered agent as the API shows it (RE-60 and decisions: bodies). */
export const AgentView = z.object({
  id: z.string(),
  orgId: z.string(),
  slug: z.string(),
  name: z.string(),
  url: z.string(),
  cardUrl: z.string(),
  trustLevel: z.enum(trustLevels),
  timeoutMs: z.number().nullable(),
  health: z.enum(healths),
  reachable: z.boolean(),
  lastError: z.string().nullable(),
  quarantine: z.object({ since: z.string(), cardHash: z.string() }).nullable(),
  /** Result of the signature check, the key that signed the card, and the pinned key (RFC 7638 thumbprints). */
  signature: z.object({
    state: z.enum(['verified', 'unsigned', 'unverified', 'invalid', 'unchecked']),
    keyThumbprint: z.string().nullable(),
    pinnedThumbprint: z.string().nullable(),
    reason: z.string().nullable(),
  }),
  protocolVersions: z.array(z.string()),
  bindings: z.array(z.string()),
  capabilities: z.object({ streaming: z.boolean(), pushNotifications: z.boolean(), extendedAgentCard: z.boolean() }),
  costPerTask: z.number().nullable(),
  credential: z.object({ type: z.string(), hint: z.string() }).nullable(),
  skills: z.array(SkillView),
  card: z
    .object({
      name: z.string(),
      url: z.string(),
      version: z.string(),
      description: z.string(),
      skills: z.array(z.unknown()),
    })
    .nullable(),
  lastFetchedAt: z.string().nullable(),
  lastSeenAt: z.string().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type AgentView = z.output<typeof AgentView>;

export const CardChangeView = z.object({
  detectedAt: z.string(),
  changes: z.array(
    z.object({ path: z.string(), kind: z.string(), before: z.unknown().optional(), after: z.unknown().optional() }),
  ),
});
export type CardChangeView = z.output<typeof CardChangeView>;

/** The tool names of a skill: the canonical name, and an alias that every client accepts. */
export interface SkillTool {
  readonly skillId: string;
  readonly canonical: string;
  readonly alias: string;
}

/** A registered agent with its parsed card, for callers, tools and policies. */
export interface RegisteredAgent {
  readonly row: AgentEntity;
  /** Undefined until the first fetch of the card. */
  readonly card?: NormalisedCard;
  readonly tools: readonly SkillTool[];
}
