import { Inject, Injectable } from '@nestjs/common';
import { isDatabaseAway } from '../../platform/database/outage.js';
import type { CallContext } from '../../kernel/call-context.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { stringifyLong } from '../../platform/turns.js';
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
import { serves, type ServerDescription } from './server-description.js';
import { legacyText, type McpResult } from './mcp-result.js';
import { ServerFeatures, type FeatureList } from '../features/server-features.js';
import type { ListOptions } from '../tools/tool-call.types.js';
import { McpTasks } from '../tools/mcp-tasks.js';
import { ToolLists } from '../tools/tool-lists.js';
import { readToolCall, ToolRouter } from '../tools/tool-router.js';

/** Members with the items of the lists, by the methods that list them. */
const lists: Readonly<Record<string, 'tools' | FeatureList | undefined>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
  'prompts/list': 'prompts',
};
const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** The JSON text of a response, and the error code when it is an error. */
export interface McpResponse {
  readonly text: string;
  readonly errorCode?: number;
  /** HTTP status when it is not 200: the gateway's database is not available, as on every door. */
  readonly status?: 503;
}

/** The context of one message: its caller, and the options for lists. */
export interface McpExchange {
  readonly ctx: CallContext;
  readonly options: ListOptions;
  readonly description: ServerDescription;
  /** Headers of a request of the 2026-07-28 revision. */
  readonly headers?: Peer['headers'];
  /**
   * True when the client takes a task instead of a result that is not ready in time (2026-07-28 with the tasks
   * extension).
   */
  readonly takesTasks?: boolean;
}

/**
 * Returns the revision for a client of the 2025 era: the requested one when it is supported, else the newest one of
 * that era (MCP lifecycle).
 */
export function negotiate(requested: unknown): string {
  return typeof requested === 'string' && legacyVersions.includes(requested) ? requested : legacyVersions[0]!;
}

export function isLegacyVersion(version: string): boolean {
  return legacyVersions.includes(version);
}

/** Serves the messages of the 2025 era: one JSON text for each request, none for a notification. */
@Injectable()
export class McpDispatch {
  constructor(
    private readonly lists: ToolLists,
    private readonly router: ToolRouter,
    private readonly tasks: McpTasks,
    private readonly features: ServerFeatures,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Responds to a request; `write` writes the text of its result. Never throws. */
  respond(
    exchange: McpExchange,
    request: JsonRpcRequest & { id: JsonRpcId },
    write: typeof legacyText = legacyText,
  ): Promise<McpResponse> {
    return this.answerWith(exchange, request, async () => {
      const result = await this.result(exchange, request);
      return result && write(result);
    });
  }

  /** Responds with the result of `work`; undefined means that the method does not exist. Never throws. */
  async answerWith(
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
      const text = await stringifyLong(errorResponse(id, code, message, data as JsonObject));
      return { text, errorCode: code, ...(isDatabaseAway(thrown) && { status: 503 }) };
    }
  }

  /** Returns the result of a request; undefined for an unknown method. Throws RialtoError. */
  async result(exchange: McpExchange, { method, params }: JsonRpcRequest): Promise<McpResult | undefined> {
    const { options, description } = exchange;
    const meta = relayedMeta(params);
    const ctx = meta ? { ...exchange.ctx, meta } : exchange.ctx;
    switch (method) {
      case 'initialize': {
        const protocolVersion = negotiate(isJsonObject(params) ? params.protocolVersion : undefined);
        const { capabilities, serverInfo, instructions } = description;
        return { kind: 'value', value: { protocolVersion, capabilities, serverInfo, instructions } };
      }
      case 'ping':
        return { kind: 'value', value: {} };
    }
    if (!serves(description, method)) return undefined;
    const list = lists[method];
    if (list === 'tools')
      return { kind: 'page', list, page: await this.lists.listTools(ctx, options, cursorOf(params)) };
    if (list) return { kind: 'page', list, page: await this.features.list(ctx, list, options, cursorOf(params)) };
    switch (method) {
      case 'tools/call': {
        const { only } = options;
        const { takesTasks = false } = exchange;
        const { result, goesOnAs } = await this.router.callTool(ctx, readToolCall(params), { only, takesTasks });
        const isTask = takesTasks && goesOnAs !== undefined;
        return { kind: 'value', value: isTask ? await this.tasks.handleFor(ctx, goesOnAs) : result };
      }
      case 'resources/read':
        return { kind: 'value', value: await this.features.readResource(ctx, options, params) };
      case 'prompts/get':
        return { kind: 'value', value: await this.features.prompt(ctx, options, params) };
      case 'completion/complete':
        return { kind: 'value', value: await this.features.complete(ctx, options, params) };
    }
    return undefined;
  }
}

/** Returns the cursor in the params of a list; undefined for the first page. */
function cursorOf(params: unknown): unknown {
  return isJsonObject(params) ? params.cursor : undefined;
}

/**
 * One element of a body: a request, a notification, an answer to a question of the gateway, or the error for an
 * invalid element.
 */
export type Incoming =
  | { readonly kind: 'request'; readonly request: JsonRpcRequest & { id: JsonRpcId } }
  | { readonly kind: 'notification'; readonly request: JsonRpcRequest }
  | { readonly kind: 'answer'; readonly answer: JsonObject }
  | { readonly kind: 'invalid'; readonly response: string };

/** Parses one message. MCP allows no null ids. */
export function readMcpMessage(value: unknown): Incoming {
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
