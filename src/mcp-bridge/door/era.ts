import type { IncomingHttpHeaders } from 'node:http';
import { classifyInboundRequest } from '@modelcontextprotocol/server';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { isLegacyVersion } from './mcp-dispatch.js';
import { isReservedMeta, metaKeys } from '../../protocol/mcp/meta.js';

const modernVersion = '2026-07-28';

/**
 * The server of a body: the gateway's own dispatch for the 2025 era (`legacy`), and for valid requests of the two
 * frequent methods of the 2026-07-28 revision (`hot`); the official SDK for the rest of that revision, including
 * refusals (`modern`).
 */
export type Era = 'legacy' | 'hot' | 'modern';

/**
 * Returns the era of a body. A pure function: common cases cost a few comparisons, doubtful ones go to the SDK's
 * classifier.
 */
export function eraOf(headers: IncomingHttpHeaders, body: unknown): Era {
  const version = headerText(headers['mcp-protocol-version']);
  const method = headerText(headers['mcp-method']);
  const claim = claimOf(body);
  if (claim === undefined && method === undefined && (version === undefined || isLegacyVersion(version)))
    return 'legacy';
  if (version === modernVersion && isJsonObject(body) && isPlain(body, method, headerText(headers['mcp-name'])))
    return 'hot';
  const mcpNameHeader = headerText(headers['mcp-name']);
  const { kind } = classifyInboundRequest({
    httpMethod: 'POST',
    protocolVersionHeader: version,
    mcpMethodHeader: method,
    mcpNameHeader,
    body,
  });
  return kind === 'legacy' ? 'legacy' : 'modern';
}

/** True when every header agrees with the body, the envelope is complete, and no member can be invalid. */
function isPlain(body: JsonObject, method: string | undefined, name: string | undefined): boolean {
  const { jsonrpc, id, params } = body;
  if (jsonrpc !== '2.0' || body.method !== method || !isJsonObject(params) || Object.keys(body).length !== 4)
    return false;
  if (!isToken(id) || !isJsonObject(params._meta) || !isPlainMeta(params._meta)) return false;
  return method === 'tools/list'
    ? params.cursor === undefined || typeof params.cursor === 'string'
    : method === 'tools/call' && typeof name === 'string' && params.name === name;
}

function isPlainMeta(meta: JsonObject): boolean {
  return (
    Object.entries(meta).every(([key, value]) => {
      switch (key) {
        case metaKeys.protocolVersion:
          return value === modernVersion;
        case metaKeys.clientCapabilities:
          return isJsonObject(value) && Object.entries(value).every(isPlainCapability);
        case metaKeys.clientInfo:
          return isJsonObject(value) && typeof value.version === 'string' && isPlainClient(value);
        case 'progressToken':
          return isToken(value);
        default:
          return !isReservedMeta(key);
      }
    }) &&
    metaKeys.clientCapabilities in meta &&
    metaKeys.protocolVersion in meta
  );
}

function isPlainClient(client: JsonObject): boolean {
  return typeof client.name === 'string' && Object.values(client).every((value) => typeof value === 'string');
}

/**
 * True for a capability without further details, such as `elicitation: { form: {} }` or `roots: { listChanged: true
 * }`.
 */
function isPlainCapability([name, capability]: [string, Json]): boolean {
  if (!isJsonObject(capability)) return false;
  return Object.values(capability).every((value) =>
    name === 'roots' ? typeof value === 'boolean' : isJsonObject(value) && Object.keys(value).length === 0,
  );
}

function isToken(value: Json | undefined): boolean {
  return typeof value === 'string' || typeof value === 'bigint' || Number.isInteger(value);
}

function claimOf(body: unknown): unknown {
  const params = isJsonObject(body) ? body.params : undefined;
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) ? meta[metaKeys.protocolVersion] : undefined;
}

function headerText(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
