import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/** The only version of the envelope. */
const a2eVersion = '1.0';

/** Types of the requests that an agent sends to the gateway. */
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

/** Types of the requests that the gateway sends to an agent, by the method of the MCP server that asks. */
export const questionTypes = {
  'sampling/createMessage': 'mcp/sampling/req',
  'roots/list': 'mcp/roots/list/req',
} as const;

/** Type of the messages that the gateway sends to an agent without a request. */
export const pushType = 'mcp/server/push';

/**
 * Largest number of an agent's messages that the gateway processes at once on one socket. Answers to requests
 * of the gateway do not count.
 */
export const mostAtWork = 64;

/** Older spellings of types, and the explicit `/req` form of a request. */
const otherSpellings: readonly (readonly [RegExp, string])[] = [
  [/^mcp\/sample\//, 'mcp/sampling/'],
  [/^mcp\/root\/list\//, 'mcp/roots/list/'],
  [/^mcp\/call_tool\/req$/, 'mcp/call_tool'],
];

const answers = new Set(['mcp/sampling/resp', 'mcp/roots/list/resp']);
const envelopeMembers = new Set(['type', 'id', 'version', 'ts', 'req_id', 'ok', 'error', 'payload', 'data']);
const maxType = 200;
const maxId = 200;

/** A received message; its payload is one object, no matter where its members were. */
export interface A2eMessage {
  /** The current spelling. */
  readonly type: string;
  /** The spelling that was sent; the reply uses it too. */
  readonly spelling: string;
  readonly id: string;
  /** The id of the request that this message answers. */
  readonly reqId?: string;
  /** False when an answer reports an error. */
  readonly ok: boolean;
  readonly error: JsonObject;
  readonly payload: JsonObject;
}

export type ParsedMessage =
  | { readonly ok: true; readonly message: A2eMessage }
  /** `type` and `id` are the parts of the message that could be read, for the reply. */
  | { readonly ok: false; readonly reason: string; readonly type?: string; readonly id?: string };

/**
 * Reads a message from a JSON value. Payload members may be at the top level or in a `payload` or `data` object; the
 * top level takes precedence. Unknown members are kept, because no code reads them.
 */
export function readMessage(value: unknown): ParsedMessage {
  if (!isJsonObject(value)) return { ok: false, reason: 'a message must be an object' };
  const type = textUpTo(maxType, value.type);
  const id = textUpTo(maxId, value.id);
  const invalid = (reason: string): ParsedMessage => ({ ok: false, reason, type, id });
  if (type === undefined) return invalid(`type must be a non-empty string of at most ${maxType} characters`);
  if (id === undefined) return invalid(`id must be a non-empty string of at most ${maxId} characters`);
  if ((value.version ?? a2eVersion) !== a2eVersion) return invalid(`version must be "${a2eVersion}"`);
  if (value.ts !== undefined && value.ts !== null && typeof value.ts !== 'number')
    return invalid('ts must be a number');
  const [data, payload] = [value.data ?? {}, value.payload ?? {}];
  if (!isJsonObject(data) || !isJsonObject(payload)) return invalid('payload must be an object');
  const topLevel = Object.entries(value).filter(([name]) => !envelopeMembers.has(name));
  const reqId = textUpTo(maxId, value.req_id);
  const message: A2eMessage = {
    type: canonicalType(type),
    spelling: type,
    id,
    ...(reqId !== undefined && { reqId }),
    ok: value.ok !== false,
    error: isJsonObject(value.error) ? value.error : {},
    payload: { ...data, ...payload, ...Object.fromEntries(topLevel) },
  };
  return { ok: true, message };
}

/** Returns the current spelling of a message type. */
export function canonicalType(type: string): string {
  for (const [spelling, current] of otherSpellings) if (spelling.test(type)) return type.replace(spelling, current);
  return type;
}

/** True when a message answers a request of the gateway. */
export function isAnswer({ type }: A2eMessage): boolean {
  return answers.has(type);
}

/** Values of a new message that its creator supplies: its id, and the time in milliseconds since the epoch. */
export interface Stamp {
  readonly id: string;
  readonly now: number;
}

/** A message to send. */
export type SentMessage = JsonObject & { readonly type: string; readonly id: string };

/** Builds a message of the gateway. `ts` is in seconds, with fractions. */
export function messageOf(type: string, { id, now }: Stamp, payload: JsonObject): SentMessage {
  return { type, id, version: a2eVersion, ts: now / 1_000, ...payload };
}

/** Builds the reply to a successful request. */
export function replyTo(request: { type?: string; id?: string }, stamp: Stamp, payload: JsonObject): SentMessage {
  return messageOf(replyTypeOf(request.type), stamp, { req_id: request.id ?? null, ok: true, ...payload });
}

/** Builds the reply to a message that was refused or could not be read. */
export function refusalOf(request: { type?: string; id?: string }, stamp: Stamp, error: JsonObject): SentMessage {
  return messageOf(replyTypeOf(request.type), stamp, { req_id: request.id ?? null, ok: false, error });
}

function replyTypeOf(type = 'mcp/error'): string {
  return type === 'mcp/error' || type.endsWith('/resp') ? type : `${type.replace(/\/req$/, '')}/resp`;
}

function textUpTo(max: number, value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= max ? value : undefined;
}
