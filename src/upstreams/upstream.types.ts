import { z } from 'zod';
import type { JsonObject } from '../kernel/json.js';
import { framingHeaders, HeaderName, HeaderValue, Name } from '../platform/http/params.js';

export const upstreamTransports = ['streamable-http', 'sse', 'websocket', 'stdio'] as const;
export type UpstreamTransport = (typeof upstreamTransports)[number];
/** Names that other products use for the transports. */
const otherNames = new Map<unknown, UpstreamTransport>([
  ['http', 'streamable-http'],
  ['streamable_http', 'streamable-http'],
  ['streamableHttp', 'streamable-http'],
  ['ws', 'websocket'],
]);
const Transport = z.preprocess((given) => otherNames.get(given) ?? given, z.enum(upstreamTransports));

/** Whether callers have their own credentials. With `required`, each call needs one. */
export const userCredentials = ['none', 'optional', 'required'] as const;
export type UserCredentials = (typeof userCredentials)[number];

/** Command of a `stdio` server: an entry of the operator's catalogue, or a path where any program is allowed. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
}

/** Item of a list that clients could not read as it is. */
export const ListProblem = z.object({
  list: z.enum(['tools', 'resources', 'resourceTemplates', 'prompts']),
  /** Name or URI of the item at the server; empty when it has none. */
  name: z.string(),
  problem: z.string(),
  /** `mended`: listed without the invalid member; `left out`: not listed. */
  effect: z.enum(['mended', 'left out']),
});
export type ListProblem = z.output<typeof ListProblem>;

/** Offer of an MCP server, as the server sent it. */
export interface Offer extends Offers {
  /**
   * Items that were left out, and tools with an `outputSchema` that no client could compile (`mended`); absent when
   * there are none.
   */
  readonly problems?: readonly ListProblem[];
  readonly protocolVersion: string;
  readonly serverInfo: JsonObject;
  readonly instructions?: string;
  readonly capabilities: JsonObject;
  /** True when the server was seen to accept no request before `initialize`. */
  readonly wantsInitialize?: true;
}

/** Lists of an MCP server. */
export interface Offers {
  readonly tools: readonly OfferedTool[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  readonly prompts: readonly OfferedPrompt[];
}

/**
 * Lists that were read. A list that the server refused is absent, except for tools: a server without readable tools is
 * an error.
 */
export type FoundOffers = Pick<Offers, 'tools'> & Partial<Offers> & Pick<Offer, 'problems'>;
/** Offer that was read. */
export type FoundOffer = Omit<Offer, keyof Offers> & FoundOffers;

/** Tool definition with all members that the server sent. */
export type OfferedTool = JsonObject & { readonly name: string };
export type OfferedResource = JsonObject & { readonly uri: string };
export type OfferedTemplate = JsonObject & { readonly uriTemplate: string };
export type OfferedPrompt = JsonObject & { readonly name: string };

/** How one of several servers with the same tool is chosen (AE-72, AE-73). */
export const strategies = ['first', 'round-robin', 'least-loaded'] as const;
export type Strategy = (typeof strategies)[number];

/** Revisions of MCP to use with a server: the newest that it supports, only those of 2025, or only 2026-07-28. */
export const eras = ['auto', 'legacy', 'modern'] as const;
export type Era = (typeof eras)[number];

/**
 * Policy for tools that differ from the approved ones: `hold-changed` quarantines changed tools, `hold-all` new
 * tools too.
 */
export const toolChanges = ['accept', 'hold-changed', 'hold-all'] as const;
export type ToolChanges = (typeof toolChanges)[number];

/** Approved definition of a tool, by its hash. */
export interface ToolPin {
  readonly name: string;
  readonly hash: string;
}

/**
 * Quarantine of a tool: since when (ISO 8601) it differs from the approved definition; `approvedHash` is null when no
 * tool of that name was approved.
 */
export const Quarantine = z.object({ since: z.iso.datetime(), hash: z.string(), approvedHash: z.string().nullable() });
export type Quarantine = z.output<typeof Quarantine>;
export type QuarantinedTool = ToolPin & Quarantine;

/** First part of each tool name. It cannot hold `__`, which separates it from the rest. */
const ServerId = z.string().regex(/^(?!.*__)[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, {
  message: 'must be lower-case letters, digits, - or _, at most 32, without __',
});
/** Headers that the transport sets. */
const reservedHeaders = new Set([
  ...framingHeaders,
  ...['accept', 'last-event-id', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
]);
const OwnHeader = HeaderName.refine((name) => !reservedHeaders.has(name.toLowerCase()), {
  message: 'is a reserved header',
});
const headers = z
  .record(OwnHeader, HeaderValue)
  .refine((given) => Object.keys(given).length <= 50, { message: 'must have at most 50 entries' });
const userHeaders = z
  .array(OwnHeader)
  .min(1)
  .max(10)
  .refine((names) => new Set(names.map((name) => name.toLowerCase())).size === names.length, {
    message: 'must name each header once',
  });
const allowList = z.array(z.string().min(1).max(2_048)).max(1_000);

/** Folder of a client (MCP, roots). */
const Root = z.strictObject({
  uri: z.string().max(2_048).startsWith('file://', { message: 'must begin with file://' }),
  name: z.string().max(200).optional(),
});
export type Root = z.output<typeof Root>;

const text = z
  .string()
  .max(4_096)
  .regex(/^[^\0]*$/, { message: 'must not hold a NUL' });
const env = z
  .record(z.string().regex(/^[A-Za-z_]\w{0,127}$/, { message: 'is not a valid name of a variable' }), text.max(8_192))
  .refine((given) => Object.keys(given).length <= 50, { message: 'must have at most 50 entries' });

const ofUsers = { userCredentials: z.enum(userCredentials).optional(), userHeaders: userHeaders.optional() };
const web = { url: z.string().min(1).max(2_048).optional(), headers: headers.optional(), ...ofUsers };
const program = {
  command: text.min(1).optional(),
  args: z.array(text).max(100).optional(),
  cwd: text.startsWith('/', { message: 'must be an absolute path' }).optional(),
  env: env.optional(),
};
const parts = {
  transport: Transport.optional(),
  ...web,
  ...program,
  name: Name.optional(),
  timeoutMs: z.number().int().min(100).max(3_600_000).optional(),
  autoReconnect: z.boolean().optional(),
  toolAllowList: allowList.optional(),
  resourceAllowList: allowList.optional(),
  roots: z.array(Root).max(100).optional(),
  callsPerMinute: z.number().int().min(1).max(1_000_000).nullable().optional(),
  toolChanges: z.enum(toolChanges).optional(),
  era: z.enum(eras).optional(),
};
type Parts = z.output<z.ZodObject<typeof parts>>;

/** Checks that the input holds either an address with its members or a program with its members. */
function isOneKind(given: Parts, context: z.RefinementCtx): void {
  const isProgram = given.command !== undefined || given.transport === 'stdio';
  const others = Object.keys(isProgram ? web : program) as (keyof Parts)[];
  const message = isProgram ? 'is not for a program' : 'is only for a program';
  for (const path of others) if (given[path] !== undefined) context.addIssue({ code: 'custom', path: [path], message });
  if (isProgram && given.transport !== undefined && given.transport !== 'stdio')
    context.addIssue({ code: 'custom', path: ['transport'], message: 'must be stdio for a program' });
}

/** `POST /api/mcp/servers`. Without an id, the server gets one of 8 hex digits (AE-23). */
export const RegisterServer = z.strictObject({ id: ServerId.optional(), ...parts }).superRefine((given, context) => {
  isOneKind(given, context);
  if (given.url === undefined && given.command === undefined)
    context.addIssue({ code: 'custom', path: ['url'], message: 'is required, unless there is a command' });
});
export type RegisterServer = z.output<typeof RegisterServer>;

/**
 * `PATCH /api/mcp/servers/{id}`: changes the given members. An address cannot become a program, or a program an
 * address.
 */
export const ChangeServer = z.strictObject(parts);
export type ChangeServer = z.output<typeof ChangeServer>;

/**
 * `POST /api/mcp/servers/{id}/approve`: approves the current definitions of these tools, by their names at the server;
 * without `tools`, of all tools. `hash` names the definition that the admin has seen.
 */
export const ApproveTools = z
  .strictObject({
    tools: z
      .array(z.strictObject({ name: z.string().min(1).max(256), hash: z.string().max(64).optional() }))
      .max(2_000)
      .optional(),
  })
  .prefault({});
export type ApproveTools = z.output<typeof ApproveTools>;

const Status = z.enum(['connecting', 'ready', 'error', 'disconnected']);
export type UpstreamStatus = z.output<typeof Status>;

/** MCP server as its org sees it (AE-58). */
export const ServerView = z.object({
  id: z.string(),
  name: z.string(),
  transport: z.enum(upstreamTransports),
  /** URL without its query; null for a program. */
  url: z.string().nullable(),
  command: z.string().nullable(),
  args: z.array(z.string()),
  cwd: z.string().nullable(),
  /** Names only. */
  headers: z.array(z.string()),
  env: z.array(z.string()),
  userCredentials: z.enum(userCredentials),
  userHeaders: z.array(z.string()),
  timeoutMs: z.number(),
  autoReconnect: z.boolean(),
  toolAllowList: z.array(z.string()),
  resourceAllowList: z.array(z.string()),
  roots: z.array(Root),
  /** Limit for one caller and one tool; null: the limit of the deployment. */
  callsPerMinute: z.int().nullable(),
  toolChanges: z.enum(toolChanges),
  era: z.enum(eras),
  source: z.enum(['api', 'config']),
  /** Status of the connection of the answering process; `disconnected` while it has none. */
  status: Status,
  /** Reason of the status `error`. */
  error: z.string().nullable(),
  connectedAt: z.iso.datetime().nullable(),
  /** Duration of the last ping in milliseconds. */
  lastPingMs: z.number().nullable(),
  mcpVersion: z.string(),
  serverName: z.string(),
  serverVersion: z.string(),
  /** Tools with the names that policies use. A quarantined tool is neither listed to clients nor callable. */
  tools: z.array(z.object({ name: z.string(), toolName: z.string(), quarantine: Quarantine.optional() })),
  /** Number of items that the allow lists permit. */
  counts: z.object({ tools: z.int(), resources: z.int(), resourceTemplates: z.int(), prompts: z.int() }),
  /** Items of its lists that clients could not read as they are. */
  problems: z.array(ListProblem),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type ServerView = z.output<typeof ServerView>;

export const ServerQuery = z.strictObject({
  status: Status.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type ServerQuery = z.output<typeof ServerQuery>;
