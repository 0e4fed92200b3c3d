import { z } from 'zod';
import type { JsonObject } from '../kernel/json.js';
import { framingHeaders, HeaderName, HeaderValue, Name } from '../platform/http/params.js';

export const upstreamTransports = ['streamable-http', 'sse', 'websocket', 'stdio'] as const;
export type UpstreamTransport = (typeof upstreamTransports)[number];
/** What others call them. */
const otherNames = new Map<unknown, UpstreamTransport>([
  ['http', 'streamable-http'],
  ['streamable_http', 'streamable-http'],
  ['streamableHttp', 'streamable-http'],
  ['ws', 'websocket'],
]);
const Transport = z.preprocess((given) => otherNames.get(given) ?? given, z.enum(upstreamTransports));

/** Whether its callers have credentials of their own: where they are required, no call goes without one. */
export const userCredentials = ['none', 'optional', 'required'] as const;
export type UserCredentials = (typeof userCredentials)[number];

/** What is started for a `stdio` server: an entry of the operator's catalogue, or where any may be, a path. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
}

/** An item of a list that clients could not read as it is. */
export const ListProblem = z.object({
  list: z.enum(['tools', 'resources', 'resourceTemplates', 'prompts']),
  /** By the name or URI that the server has for it; empty where it has none. */
  name: z.string(),
  problem: z.string(),
  /** Whether it is listed without the member that is wrong, or not at all. */
  effect: z.enum(['mended', 'left out']),
});
export type ListProblem = z.output<typeof ListProblem>;

/** What an MCP server says that it has, as it says it. */
export interface Offer extends Offers {
  /** Items that were left out, and tools whose `outputSchema` no client could compile (`mended`); absent without any. */
  readonly problems?: readonly ListProblem[];
  readonly protocolVersion: string;
  readonly serverInfo: JsonObject;
  readonly instructions?: string;
  readonly capabilities: JsonObject;
  /** It was seen that the server bears no request before `initialize`. */
  readonly wantsInitialize?: true;
}

/** The lists of an MCP server. */
export interface Offers {
  readonly tools: readonly OfferedTool[];
  readonly resources: readonly OfferedResource[];
  readonly templates: readonly OfferedTemplate[];
  readonly prompts: readonly OfferedPrompt[];
}

/** The lists that a look found. Those that the server will not give just now are absent; a server whose tools nobody can read is of no use. */
export type FoundOffers = Pick<Offers, 'tools'> & Partial<Offers> & Pick<Offer, 'problems'>;
/** What a look found. */
export type FoundOffer = Omit<Offer, keyof Offers> & FoundOffers;

/** Whatever the server says of it. */
export type OfferedTool = JsonObject & { readonly name: string };
export type OfferedResource = JsonObject & { readonly uri: string };
export type OfferedTemplate = JsonObject & { readonly uriTemplate: string };
export type OfferedPrompt = JsonObject & { readonly name: string };

/** How one of several servers that have a tool of the same name is chosen (AE-72, AE-73). */
export const strategies = ['first', 'round-robin', 'least-loaded'] as const;
export type Strategy = (typeof strategies)[number];

/** Which revisions of MCP a server is spoken to in: the newest that it knows, those of 2025 alone, or that of 2026-07-28 alone. */
export const eras = ['auto', 'legacy', 'modern'] as const;
export type Era = (typeof eras)[number];

/** What becomes of tools that are not what was approved: `hold-changed` holds back those whose definition changed, `hold-all` new ones as well. */
export const toolChanges = ['accept', 'hold-changed', 'hold-all'] as const;
export type ToolChanges = (typeof toolChanges)[number];

/** The definition of a tool that may be used, by its hash. */
export interface ToolPin {
  readonly name: string;
  readonly hash: string;
}

/** Why a tool is held back: since when (ISO 8601) it is not what was approved; null where nothing of that name was. */
export const Quarantine = z.object({ since: z.iso.datetime(), hash: z.string(), approvedHash: z.string().nullable() });
export type Quarantine = z.output<typeof Quarantine>;
export type QuarantinedTool = ToolPin & Quarantine;

/** The first part of each tool's name; no `__`, for that ends it. */
const ServerId = z.string().regex(/^(?!.*__)[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/, {
  message: 'must be lower-case letters, digits, - or _, at most 32, without __',
});
/** The transport's own. */
const reservedHeaders = new Set([
  ...framingHeaders,
  ...['accept', 'last-event-id', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
]);
const OwnHeader = HeaderName.refine((name) => !reservedHeaders.has(name.toLowerCase()), {
  message: 'is a reserved header',
});
const headers = z
  .record(OwnHeader, HeaderValue)
  .refine((given) => Object.keys(given).length <= 50, { message: 'must be at most 50' });
const userHeaders = z
  .array(OwnHeader)
  .min(1)
  .max(10)
  .refine((names) => new Set(names.map((name) => name.toLowerCase())).size === names.length, {
    message: 'must name each header once',
  });
const allowList = z.array(z.string().min(1).max(2_048)).max(1_000);

/** A folder of its caller, as MCP has it (MCP, roots). */
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
  .record(z.string().regex(/^[A-Za-z_]\w{0,127}$/, { message: 'is no name of a variable' }), text.max(8_192))
  .refine((given) => Object.keys(given).length <= 50, { message: 'must be at most 50' });

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

/** An address and what goes there, or a program and what it is started with. */
function isOneKind(given: Parts, context: z.RefinementCtx): void {
  const isProgram = given.command !== undefined || given.transport === 'stdio';
  const others = Object.keys(isProgram ? web : program) as (keyof Parts)[];
  const message = isProgram ? 'is not for a program' : 'is for a program alone';
  for (const path of others) if (given[path] !== undefined) context.addIssue({ code: 'custom', path: [path], message });
  if (isProgram && given.transport !== undefined && given.transport !== 'stdio')
    context.addIssue({ code: 'custom', path: ['transport'], message: 'is stdio for a program' });
}

/** `POST /api/mcp/servers`. Without an id it gets one of 8 hex digits (AE-23). */
export const RegisterServer = z.strictObject({ id: ServerId.optional(), ...parts }).superRefine((given, context) => {
  isOneKind(given, context);
  if (given.url === undefined && given.command === undefined)
    context.addIssue({ code: 'custom', path: ['url'], message: 'or a command is required' });
});
export type RegisterServer = z.output<typeof RegisterServer>;

/** `PATCH /api/mcp/servers/{id}`: what is given is changed; an address stays an address, a program a program. */
export const ChangeServer = z.strictObject(parts);
export type ChangeServer = z.output<typeof ChangeServer>;

/**
 * `POST /api/mcp/servers/{id}/approve`: the tools whose present definitions are approved, by the names that the server has for them; without
 * any all. A `hash` says which definition was looked at.
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

/** An MCP server as its org sees it (AE-58). */
export const ServerView = z.object({
  id: z.string(),
  name: z.string(),
  transport: z.enum(upstreamTransports),
  /** Without its query; null for a program. */
  url: z.string().nullable(),
  command: z.string().nullable(),
  args: z.array(z.string()),
  cwd: z.string().nullable(),
  /** Their names alone. */
  headers: z.array(z.string()),
  env: z.array(z.string()),
  userCredentials: z.enum(userCredentials),
  userHeaders: z.array(z.string()),
  timeoutMs: z.number(),
  autoReconnect: z.boolean(),
  toolAllowList: z.array(z.string()),
  resourceAllowList: z.array(z.string()),
  roots: z.array(Root),
  /** Of one caller and one tool; null: as the deployment says. */
  callsPerMinute: z.int().nullable(),
  toolChanges: z.enum(toolChanges),
  era: z.enum(eras),
  source: z.enum(['api', 'config']),
  /** Of the connection of the process that answers; `disconnected` while it needs none. */
  status: Status,
  /** Why it is `error`. */
  error: z.string().nullable(),
  connectedAt: z.iso.datetime().nullable(),
  /** How long it took to say that it is there, when it was asked last, in milliseconds. */
  lastPingMs: z.number().nullable(),
  mcpVersion: z.string(),
  serverName: z.string(),
  serverVersion: z.string(),
  /** By the names that policies know; one in quarantine is neither listed to clients nor called. */
  tools: z.array(z.object({ name: z.string(), toolName: z.string(), quarantine: Quarantine.optional() })),
  /** How much of each its allow lists let through. */
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
