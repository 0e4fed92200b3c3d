import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/** The one version of the envelope. */
const a2eVersion = '1.0';

/** What an agent asks of the gateway. */
export const requestTypes = [
  'mcp/server/register/req',
  'mcp/server/list/req',
  'mcp/server/unregister/req',
  'mcp/server/push',
  'mcp/resource/list/req',
  'mcp/resource/read/req',
  'mcp/resource/subscribe/req',
  'mcp/prompt/list/req',
  'mcp/prompt/get/req',
  'mcp/roots/list/req',
  'mcp/call_tool',
] as const;
export type RequestType = (typeof requestTypes)[number];

/** What the gateway asks of an agent, by the method of the MCP server that wants to know. */
export const questionTypes = {
  'sampling/createMessage': 'mcp/sampling/req',
  'roots/list': 'mcp/roots/list/req',
} as const;

/** Unasked for, from the gateway to the agent. */
export const pushType = 'mcp/server/push';

/** Messages of an agent that the gateway works on at once on one socket. Answers to its questions do not count. */
export const mostAtWork = 64;

/** Older spellings, and a request that says it is one. */
const otherSpellings: readonly (readonly [RegExp, string])[] = [
  [/^mcp\/sample\//, 'mcp/sampling/'],
  [/^mcp\/root\/list\//, 'mcp/roots/list/'],
  [/^mcp\/call_tool\/req$/, 'mcp/call_tool'],
];

const answers = new Set(['mcp/sampling/resp', 'mcp/roots/list/resp']);
const envelopeMembers = new Set(['type', 'id', 'version', 'ts', 'req_id', 'ok', 'error', 'payload', 'data']);
const maxType = 200;
const maxId = 200;

/** A message as it came, its payload in one object wherever its members stood. */
export interface A2eMessage {
  /** The spelling of today. */
  readonly type: string;
  /** As it was sent: a reply is spelled alike. */
  readonly spelling: string;
  readonly id: string;
  /** The request that it answers. */
  readonly reqId?: string;
  /** Whether an answer is one. */
  readonly ok: boolean;
  readonly error: JsonObject;
  readonly payload: JsonObject;
}

export type ParsedMessage =
  | { readonly ok: true; readonly message: A2eMessage }
  /** What of the message could be read, for its reply. */
  | { readonly ok: false; readonly reason: string; readonly type?: string; readonly id?: string };

/**
 * Any JSON value to a message. Members of the payload stand at the top level; those of a `payload` or `data` object count where the
 * top level has none. Unknown members are kept, for nobody looks at them.
 */
export function readMessage(value: unknown): ParsedMessage {
  if (!isJsonObject(value)) return { ok: false, reason: 'a message is an object' };
  const type = textUpTo(maxType, value.type);
  const id = textUpTo(maxId, value.id);
  const invalid = (reason: string): ParsedMessage => ({ ok: false, reason, type, id });
  if (type === undefined) return invalid(`type is a text of at most ${maxType} characters`);
  if (id === undefined) return invalid(`id is a text of at most ${maxId} characters`);
  if ((value.version ?? a2eVersion) !== a2eVersion) return invalid(`version is "${a2eVersion}"`);
  if (value.ts !== undefined && value.ts !== null && typeof value.ts !== 'number') return invalid('ts is a number');
  const [data, payload] = [value.data ?? {}, value.payload ?? {}];
  if (!isJsonObject(data) || !isJsonObject(payload)) return invalid('payload is an object');
  const own = Object.entries(value).filter(([name]) => !envelopeMembers.has(name));
  const reqId = textUpTo(maxId, value.req_id);
  const message: A2eMessage = {
    type: canonicalType(type),
    spelling: type,
    id,
    ...(reqId !== undefined && { reqId }),
    ok: value.ok !== false,
    error: isJsonObject(value.error) ? value.error : {},
    payload: { ...data, ...payload, ...Object.fromEntries(own) },
  };
  return { ok: true, message };
}

/** The spelling of today of a message type. */
export function canonicalType(type: string): string {
  for (const [spelling, today] of otherSpellings) if (spelling.test(type)) return type.replace(spelling, today);
  return type;
}

/** Whether a message answers something that the gateway asked. */
export function isAnswer({ type }: A2eMessage): boolean {
  return answers.has(type);
}

/** What a new message is given from outside: an id of its own, and milliseconds since the epoch. */
export interface Stamp {
  readonly id: string;
  readonly now: number;
}

/** A message as it is sent. */
export type SentMessage = JsonObject & { readonly type: string; readonly id: string };

/** A message of the gateway's own. `ts` is in seconds, with fractions. */
export function messageOf(type: string, { id, now }: Stamp, payload: JsonObject): SentMessage {
  return { type, id, version: a2eVersion, ts: now / 1_000, ...payload };
}

/** The reply to a request that was served. */
export function replyTo(request: { type?: string; id?: string }, stamp: Stamp, payload: JsonObject): SentMessage {
  return messageOf(replyTypeOf(request.type), stamp, { req_id: request.id ?? null, ok: true, ...payload });
}

/** The reply to a message that was refused, or could not be read. */
export function refusalOf(request: { type?: string; id?: string }, stamp: Stamp, error: JsonObject): SentMessage {
  return messageOf(replyTypeOf(request.type), stamp, { req_id: request.id ?? null, ok: false, error });
}

function replyTypeOf(type = 'mcp/error'): string {
  return type === 'mcp/error' || type.endsWith('/resp') ? type : `${type.replace(/\/req$/, '')}/resp`;
}

function textUpTo(max: number, value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= max ? value : undefined;
}
