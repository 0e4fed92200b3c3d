import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';

export { containsUnstorable, parseJson, storableJson, unstorable, type ParsedJson } from './json-text.js';

/** The id of a request; null in the response to a request with an unreadable id (JSON-RPC 2.0 section 5). */
export type JsonRpcId = string | number | bigint | null;

export interface JsonRpcRequest {
  /** Absent in a notification. */
  readonly id?: JsonRpcId;
  readonly method: string;
  readonly params?: JsonObject | Json[];
}

export interface JsonRpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Json;
}

export type JsonRpcResponse =
  | { readonly jsonrpc: '2.0'; readonly id: JsonRpcId; readonly result: Json }
  | { readonly jsonrpc: '2.0'; readonly id: JsonRpcId; readonly error: JsonRpcError };

export type ParsedRequest =
  | { readonly ok: true; readonly request: JsonRpcRequest }
  | { readonly ok: false; readonly id: JsonRpcId; readonly reason: string };

export type ParsedResponse =
  | { readonly ok: true; readonly id: JsonRpcId; readonly result: Json }
  | { readonly ok: true; readonly id: JsonRpcId; readonly error: JsonRpcError }
  | { readonly ok: false; readonly reason: string };

/** The codes that JSON-RPC 2.0 section 5.1 reserves. */
export const jsonRpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
} as const;

const maxIdLength = 1_024;

/**
 * Reads one request or notification from a JSON value (JSON-RPC 2.0 section 4). Only own members count. The failure for
 * an invalid request has its id when the id is readable, otherwise null (section 5). Doors handle batches themselves.
 */
export function parseRequest(value: unknown): ParsedRequest {
  if (!isJsonObject(value)) return { ok: false, id: null, reason: 'a request must be an object' };
  const id = ownMember(value, 'id');
  if (id !== undefined && !isId(id)) return { ok: false, id: null, reason: 'id must be a string, a number or null' };
  const invalid = (reason: string): ParsedRequest => ({ ok: false, id: id ?? null, reason });
  if (ownMember(value, 'jsonrpc') !== '2.0') return invalid('jsonrpc must be "2.0"');
  const method = ownMember(value, 'method');
  if (typeof method !== 'string' || method === '') return invalid('method must be a non-empty string');
  const params = ownMember(value, 'params');
  if (params !== undefined && !isJsonObject(params) && !Array.isArray(params)) {
    return invalid('params must be an object or an array');
  }
  return { ok: true, request: { method, ...(id !== undefined && { id }), ...(params && { params }) } };
}

/**
 * Reads one response from a JSON value (JSON-RPC 2.0 section 5): it must have exactly one of result and error. Two
 * deviations of existing servers are tolerated: the other member may be present as null, and an error may have no id.
 */
export function parseResponse(value: unknown): ParsedResponse {
  const invalid = (reason: string): ParsedResponse => ({ ok: false, reason });
  if (!isJsonObject(value) || ownMember(value, 'jsonrpc') !== '2.0') return invalid('it has no JSON-RPC 2.0 envelope');
  const [result, error] = [ownMember(value, 'result'), ownMember(value, 'error') ?? undefined];
  const id = ownMember(value, 'id') ?? null;
  if (!isId(id)) return invalid('its id is not a string, a number or null');
  if (error !== undefined) {
    if (result !== undefined && result !== null) return invalid('it has both result and error');
    return isError(error) ? { ok: true, id, error } : invalid('its error has no code and message');
  }
  if (result === undefined) return invalid('it has neither result nor error');
  return { ok: true, id, result };
}

/** Builds the response to a successful request (JSON-RPC 2.0 section 5). */
export function resultResponse(id: JsonRpcId, result: Json): JsonRpcResponse {
  return { jsonrpc: '2.0', id, result };
}

/** Builds the response to a failed request (JSON-RPC 2.0 section 5.1); `data` is omitted when undefined. */
export function errorResponse(id: JsonRpcId, code: number, message: string, data?: Json): JsonRpcResponse {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } };
}

function ownMember(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isId(value: Json): value is JsonRpcId & Json {
  return (
    value === null ||
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    (typeof value === 'string' && value.length <= maxIdLength)
  );
}

function isError(value: Json): value is JsonObject & JsonRpcError {
  return (
    isJsonObject(value) && Number.isInteger(ownMember(value, 'code')) && typeof ownMember(value, 'message') === 'string'
  );
}
