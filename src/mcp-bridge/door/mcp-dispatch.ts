import { Inject, Injectable } from '@nestjs/common';
import { isDatabaseAway } from '../../platform/database/outage.js';
import { parseExact } from '../../protocol/exact-integers.js';
import type { CallContext } from '../../kernel/call-context.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import {
  errorResponse,
  jsonRpcCodes,
  parseRequest,
  type JsonRpcId,
  type JsonRpcRequest,
} from '../../protocol/jsonrpc.js';
import { relayedMeta } from '../../protocol/mcp/request-meta.js';
import { serves, type Face } from './face.js';
import { pageText } from '../tools/list-page.js';
import { ServerFeatures } from '../features/server-features.js';
import type { ListOptions } from '../tools/tool-call.types.js';
import { readToolCall } from '../tools/tools.service.js';
import { ToolSet } from '../tools/tool-set.js';

const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The JSON text of a response, and the code when it is an error. */
export interface McpResponse {
  readonly text: string;
  readonly errorCode?: number;
  /** Of HTTP, where it is not 200: our own database is away, as at every door (R4). */
  readonly status?: 503;
}

/** What surrounds one message: who, with which list options. */
export interface McpExchange {
  readonly ctx: CallContext;
  readonly options: ListOptions;
  readonly face: Face;
  /** Of a request of the 2026-07-28 revision. */
  readonly headers?: Peer['headers'];
  /** The client takes a task in place of a result that is not there in time (2026-07-28 with the tasks extension). */
  readonly takesTasks?: boolean;
}

/** The revision that answers a client of the 2025 era: its own when we know it, else our newest (MCP lifecycle). */
export function negotiate(requested: unknown): string {
  return typeof requested === 'string' && legacyVersions.includes(requested) ? requested : legacyVersions[0]!;
}

export function isLegacyVersion(version: string): boolean {
  return legacyVersions.includes(version);
}

/** How the text of a result begins that says what it is: a task handle, or questions; every other is complete. */
const typedStart = '{"resultType":"';

/** The JSON text of a result in the 2026-07-28 revision; lists may not be kept, for they depend on who asks. */
export function modernResult({ serverInfo }: Face, method: string, text: string): string {
  const caching = method === 'tools/list' ? '"ttlMs":0,"cacheScope":"private",' : '';
  const type = text.startsWith(typedStart) ? '' : '"resultType":"complete",';
  const added = { 'io.modelcontextprotocol/serverInfo': serverInfo };
  const [rest, meta] = method === 'tools/call' && text.includes('"_meta":') ? apart(text, added) : [text, added];
  return `${rest.slice(0, -1)},${caching}${type}"_meta":${JSON.stringify(meta)}}`;
}

/** A result, and what its own `_meta` and ours say together. */
function apart(text: string, added: JsonObject): [rest: string, meta: JsonObject] {
  const { _meta, ...rest } = parseExact(text) as JsonObject;
  return [JSON.stringify(rest), { ...(isJsonObject(_meta) ? _meta : undefined), ...added }];
}

/** Serves the messages of the 2025 era: one JSON text per request, nothing for a notification. */
@Injectable()
export class McpDispatch {
  constructor(
    private readonly tools: ToolSet,
    private readonly features: ServerFeatures,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** The response to a request; `shape` has the last word on the text of a result. Never throws. */
  respond(
    exchange: McpExchange,
    request: JsonRpcRequest & { id: JsonRpcId },
    shape?: (method: string, text: string) => string,
  ): Promise<McpResponse> {
    return this.answer(exchange, request, async () => {
      const plain = await this.result(exchange, request);
      return plain === undefined || !shape ? plain : shape(request.method, plain);
    });
  }

  /** The same for a result of somebody else's; undefined: there is no such method. */
  async answer(
    { ctx }: McpExchange,
    { id, method }: JsonRpcRequest & { id: JsonRpcId },
    work: () => Promise<string | undefined>,
  ): Promise<McpResponse> {
    try {
      const result = await work();
      if (result !== undefined) return { text: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}` };
      const unknown = `Method not found: ${method.slice(0, 100)}`;
      return { text: JSON.stringify(errorResponse(id, jsonRpcCodes.methodNotFound, unknown)) };
    } catch (thrown) {
      const { code, message, data } = mcpError(thrown);
      if (data.code === 'internal') this.log.error({ err: thrown, requestId: ctx.requestId }, 'an MCP request failed');
      const text = JSON.stringify(errorResponse(id, code, message, data as JsonObject));
      return { text, errorCode: code, ...(isDatabaseAway(thrown) && { status: 503 }) };
    }
  }

  /** The JSON text of a result; undefined for a method that there is none of. Throws RialtoError. */
  async result(exchange: McpExchange, { method, params }: JsonRpcRequest): Promise<string | undefined> {
    const { options, face, takesTasks } = exchange;
    const meta = relayedMeta(params);
    const ctx = meta ? { ...exchange.ctx, meta } : exchange.ctx;
    switch (method) {
      case 'initialize': {
        const protocolVersion = negotiate(isJsonObject(params) ? params.protocolVersion : undefined);
        const { capabilities, serverInfo, instructions } = face;
        return JSON.stringify({ protocolVersion, capabilities, serverInfo, instructions });
      }
      case 'ping':
        return '{}';
    }
    if (!serves(face, method)) return undefined;
    switch (method) {
      case 'tools/call':
        return JSON.stringify(await this.tools.call(ctx, readToolCall(params), { only: options.only, takesTasks }));
      case 'tools/list':
        return pageText('tools', await this.tools.list(ctx, options, cursorOf(params)));
      case 'resources/list':
        return pageText('resources', await this.features.list(ctx, 'resources', options, cursorOf(params)));
      case 'resources/templates/list':
        return pageText(
          'resourceTemplates',
          await this.features.list(ctx, 'resourceTemplates', options, cursorOf(params)),
        );
      case 'prompts/list':
        return pageText('prompts', await this.features.list(ctx, 'prompts', options, cursorOf(params)));
      case 'resources/read':
        return JSON.stringify(await this.features.read(ctx, options, params));
      case 'prompts/get':
        return JSON.stringify(await this.features.prompt(ctx, options, params));
      case 'completion/complete':
        return JSON.stringify(await this.features.complete(ctx, options, params));
    }
    return undefined;
  }
}

/** The cursor that the params of a list go on from; undefined for the first page. */
function cursorOf(params: unknown): unknown {
  return isJsonObject(params) ? params.cursor : undefined;
}

/** One element of a body: a request, a notification, an answer to what the client was asked, or what is wrong with it. */
export type Incoming =
  | { readonly kind: 'request'; readonly request: JsonRpcRequest & { id: JsonRpcId } }
  | { readonly kind: 'notification'; readonly request: JsonRpcRequest }
  | { readonly kind: 'answer'; readonly answer: JsonObject }
  | { readonly kind: 'invalid'; readonly response: string };

/** Reads one message. MCP allows no null ids. */
export function readMessage(value: unknown): Incoming {
  if (
    isJsonObject(value) &&
    value.jsonrpc === '2.0' &&
    !('method' in value) &&
    ('result' in value || 'error' in value)
  ) {
    return { kind: 'answer', answer: value };
  }
  const parsed = parseRequest(value);
  if (!parsed.ok)
    return {
      kind: 'invalid',
      response: JSON.stringify(
        errorResponse(parsed.id, jsonRpcCodes.invalidRequest, `Invalid Request: ${parsed.reason}`),
      ),
    };
  const { request } = parsed;
  if (request.id === null)
    return {
      kind: 'invalid',
      response: JSON.stringify(
        errorResponse(null, jsonRpcCodes.invalidRequest, 'Invalid Request: id is a string or a number'),
      ),
    };
  return request.id === undefined
    ? { kind: 'notification', request }
    : { kind: 'request', request: { ...request, id: request.id } };
}
