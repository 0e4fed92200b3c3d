import { z } from 'zod';
import { isPublicKey, readKeySet, type PublicKey } from '../../protocol/e2ee/keys.js';
import { Name, Slug } from '../../platform/http/params.js';
import { containsUnstorable } from '../../protocol/json-text.js';

const reserved = ['agents', 'tasks'];
/** Namespace that agents cannot use: extensions of the gateway itself on the cards (RI-13). */
const ownNamespace = 'urn:rialto:';

const AgentName = Slug.refine((name) => !reserved.includes(name), { message: 'is reserved' });
const Handle = z
  .string()
  .max(320)
  .regex(/^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:@[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?(?::\d{1,5})?)?$/, {
    message: 'must be a word of lower-case letters, digits, - or _, or word@host',
  })
  .refine((handle) => !reserved.includes(handle.split('@')[0]!), { message: 'is reserved' });

const text = (max: number) => z.string().max(max);
const texts = (max: number, each: number) => z.array(text(each).min(1)).max(max);
const mediaTypes = z
  .array(
    z
      .string()
      .max(200)
      .regex(/^[\w.+*-]+\/[\w.+*-]+(?:\s*;.*)?$/, { message: 'is not a media type' }),
  )
  .max(50);
const webUrl = z.url({ protocol: /^https?$/ }).max(2_048);

/** Members that only the gateway sets, because it authenticates callers. Values from an agent are ignored (RI-12). */
const gatewayOnly = {
  security: z.unknown().optional(),
  securitySchemes: z.unknown().optional(),
  securityRequirements: z.unknown().optional(),
};

const Skill = z.strictObject({
  id: text(256).regex(/\S/, { message: 'must not be empty' }),
  name: text(256).optional(),
  description: text(16_384).optional(),
  tags: texts(50, 100).optional(),
  examples: texts(50, 2_000).optional(),
  inputModes: mediaTypes.optional(),
  outputModes: mediaTypes.optional(),
  inputSchema: z.record(z.string(), z.unknown()).optional(),
  public: z.boolean().optional(),
  requiresAuth: z.boolean().optional(),
  isConsequential: z.boolean().optional(),
  ...gatewayOnly,
});

const Skills = z
  .array(Skill)
  .max(500)
  .refine((skills) => new Set(skills.map(({ id }) => id)).size === skills.length, {
    message: 'contains the same id twice',
  });

const Extension = z.strictObject({
  uri: text(512)
    .regex(/^[a-z][a-z0-9+.-]*:\S+$/i, { message: 'is not a URI' })
    .refine((uri) => !uri.toLowerCase().startsWith(ownNamespace), {
      message: 'is in the reserved namespace of the gateway',
    }),
  description: text(2_000).optional(),
  required: z.boolean().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
});

const EchoConfig = z.strictObject({
  kind: z.literal('echo'),
  delayMs: z.number().int().min(0).max(600_000).optional(),
  chunks: z.number().int().min(1).max(1_000).optional(),
  ask: text(2_000).min(1).optional(),
});
const RemoteConfig = z.strictObject({
  kind: z.literal('remote'),
  agentId: text(200).min(1),
  skillId: text(256).min(1).optional(),
});
const ToolConfig = z.strictObject({
  kind: z.literal('mcp-tool'),
  serverId: text(32).min(1),
  tool: text(256).min(1).optional(),
});
// The skills of an agent with routes are its own, so that a message cannot name the tool.
const Routed = z.discriminatedUnion('kind', [EchoConfig, RemoteConfig, ToolConfig.required({ tool: true })]);
const phrase = text(200).regex(/[\p{L}\p{N}]/u, { message: 'must have a letter or a digit' });

/**
 * Executors that a published agent can have. Only the operator can set the `conformance` executor
 * (RIALTO_CONFORMANCE_AGENT).
 */
const Executor = z.discriminatedUnion('kind', [
  EchoConfig,
  RemoteConfig,
  z.strictObject({ kind: z.literal('http'), url: text(2_048).min(1) }),
  z.strictObject({ kind: z.literal('mailbox') }),
  ToolConfig,
  z.strictObject({
    kind: z.literal('routes'),
    routes: z
      .array(z.strictObject({ when: z.array(phrase).min(1).max(50), executor: Routed }))
      .min(1)
      .max(20),
    otherwise: Routed,
  }),
  z.strictObject({
    kind: z.literal('llm'),
    url: text(2_048).min(1),
    model: text(256).min(1),
    /** Sealed and never shown; null removes it. */
    apiKey: text(4_096)
      .regex(/^[\x21-\x7e]+$/, { message: 'must be visible ASCII characters' })
      .nullable()
      .optional(),
    system: text(100_000).optional(),
    tools: texts(100, 256).optional(),
    maxSteps: z.number().int().min(1).max(50).optional(),
    maxSeconds: z.number().int().min(1).max(3_600).optional(),
    maxTokens: z.number().int().min(1).max(1_000_000).optional(),
    temperature: z.number().min(0).max(2).optional(),
  }),
]);
export type GivenExecutor = z.output<typeof Executor>;

const parts = {
  skills: Skills.optional(),
  a2a_enabled: z.boolean().optional(),
  publishToCard: z.boolean().optional(),
  /** RE-79: another name for `publishToCard`. */
  trust: z.strictObject({ publish_to_a2a: z.boolean().optional() }).optional(),
  streaming: z.boolean().optional(),
  pushNotifications: z.boolean().optional(),
  extendedCard: z.boolean().optional(),
  defaultInputModes: mediaTypes.optional(),
  defaultOutputModes: mediaTypes.optional(),
  version: text(64).min(1).optional(),
  extensions: z.array(Extension).max(50).optional(),
  protocolVersions: z
    .array(z.enum(['1.0', '0.3']))
    .min(1)
    .max(2)
    .refine((versions) => new Set(versions).size === versions.length, { message: 'contains the same version twice' })
    .optional(),
  history: z.enum(['context', 'agent']).optional(),
  ...gatewayOnly,
};
/** Members that null clears. */
const clearable = {
  handle: Handle.nullable().optional(),
  a2a_accept_cleartext: z.boolean().nullable().optional(),
  provider: z
    .strictObject({ organization: text(256).min(1), url: webUrl })
    .nullable()
    .optional(),
  documentationUrl: webUrl.nullable().optional(),
  iconUrl: webUrl.nullable().optional(),
};
const description = text(16_384).regex(/\S/, { message: 'must not be empty' });
const storable = (value: unknown) => !containsUnstorable(value);
const unstorable = { message: 'contains a NUL character or a lone surrogate' };

/** Declaration of a published agent (decisions: bodies that outside checks rely on). */
export const PublishAgent = z
  .strictObject({ name: AgentName, description, executor: Executor, ...parts, ...clearable })
  .refine(storable, unstorable);
export type PublishAgent = z.output<typeof PublishAgent>;

/** Change of a published agent. Given lists and objects replace the stored ones. */
export const ChangePublished = z
  .strictObject({
    name: AgentName.optional(),
    description: description.optional(),
    executor: Executor.optional(),
    ...parts,
    ...clearable,
  })
  .refine((change) => Object.keys(change).length > 0, { message: 'contains no member to change' })
  .refine(storable, unstorable);
export type ChangePublished = z.output<typeof ChangePublished>;

export const PublishedQuery = z.strictObject({
  q: Name.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type PublishedQuery = z.output<typeof PublishedQuery>;

const Urls = z.object({
  jsonRpc: z.string(),
  rest: z.string(),
  card: z.string(),
  handleCard: z.string().optional(),
  keys: z.string(),
  grpc: z.string().optional(),
});

/** A published agent as the API shows it. Lists that were not declared show the values of the card. */
export const PublishedView = z.object({
  id: z.string(),
  orgId: z.string(),
  name: z.string(),
  handle: z.string().nullable(),
  description: z.string(),
  executor: z.looseObject({ kind: z.string() }),
  a2a_enabled: z.boolean(),
  a2a_accept_cleartext: z.boolean(),
  publishToCard: z.boolean(),
  skills: z.array(z.looseObject({ id: z.string(), name: z.string(), description: z.string() })),
  streaming: z.boolean(),
  pushNotifications: z.boolean(),
  extendedCard: z.boolean(),
  defaultInputModes: z.array(z.string()),
  defaultOutputModes: z.array(z.string()),
  version: z.string(),
  provider: z.object({ organization: z.string(), url: z.string() }).nullable(),
  documentationUrl: z.string().nullable(),
  iconUrl: z.string().nullable(),
  extensions: z.array(z.looseObject({ uri: z.string() })),
  protocolVersions: z.array(z.string()),
  history: z.string(),
  source: z.string(),
  urls: Urls,
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type PublishedView = z.output<typeof PublishedView>;

/**
 * The view with the secret of an `http` or `mailbox` executor. Only the answer that created the secret contains it.
 */
export const NewPublishedView = PublishedView.extend({ secret: z.string().optional() });
export type NewPublishedView = z.output<typeof NewPublishedView>;

/** Public keys of an agent. A key with its private scalar is refused, so that it is not stored by mistake. */
const EncryptionKey = z
  .looseObject({ kid: z.string() })
  .refine((key) => !('d' in key), { message: 'contains the private scalar "d"; publish the public key only' })
  .refine(isPublicKey, { message: 'is not an X25519 key for "enc" or an Ed25519 key for "sig", or its kid is wrong' })
  .transform((key) => readKeySet({ keys: [key] }).keys[0]!);
export const PublishKeys = z.strictObject({
  keys: z.array(EncryptionKey).min(1).max(20),
  /** True replaces all keys; peers that pinned the old ones must pin the new ones. */
  reset: z.boolean().optional(),
});
export type PublishKeys = z.output<typeof PublishKeys>;

export const KeysView = z.object({ keys: z.array(z.looseObject({ kid: z.string() })) });
export type KeysView = { keys: PublicKey[] };

export const ExecutorSecretView = z.object({ secret: z.string() });
