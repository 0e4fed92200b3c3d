import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { VERSION } from '../platform/telemetry/version.js';
import { mcpError } from '../protocol/mcp/errors.js';
import { errorResponse, jsonRpcCodes, parseRequest, type JsonRpcId, type JsonRpcRequest } from '../protocol/jsonrpc.js';
import { tasksExtension } from './mcp-task.js';
import { pageText } from './tool-page.js';
import type { ListOptions } from './tools.service.js';
import { readToolCall } from './tools.service.js';
import { ToolSet } from './tool-set.js';

export const serverInfo = { name: VERSION.name, title: 'Rialto', version: VERSION.version };
const capabilities = { tools: { listChanged: true } };
/** The 2026-07-28 revision has tasks as an extension. */
export const modernCapabilities = { ...capabilities, extensions: { [tasksExtension]: {} } };
export const instructions =
  'Each tool calls a skill of a remote A2A agent; list_agents and send_to_agent reach the agents of this gateway. A result with a taskId is a task that goes on at the agent.';

const legacyVersions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

/** What surrounds one message: who, with which list options. */
export interface McpExchange {
  readonly ctx: CallContext;
  readonly options: ListOptions;
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

/** What the 2026-07-28 revision adds to every result (specification, result types). */
const modernMeta = `"_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': serverInfo })}`;
/** How the text of a task handle begins; every other result is complete. */
const taskStart = '{"resultType":"task"';

/** The JSON text of a result in the 2026-07-28 revision; lists may not be kept, for they depend on who asks. */
export function modernResult(method: string, text: string): string {
  const caching = method === 'tools/list' ? '"ttlMs":0,"cacheScope":"private",' : '';
  const type = text.startsWith(taskStart) ? '' : '"resultType":"complete",';
  return `${text.slice(0, -1)},${caching}${type}${modernMeta}}`;
}

/** Serves the messages of the 2025 era: one JSON text per request, nothing for a notification. */
@Injectable()
export class McpDispatch {
  constructor(
    private readonly tools: ToolSet,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** The JSON text of the response to a request; `shape` has the last word on a result. Never throws. */
  async respond(
    exchange: McpExchange,
    request: JsonRpcRequest & { id: JsonRpcId },
    shape: (method: string, text: string) => string = (_method, text) => text,
  ): Promise<string> {
    try {
      const plain = await this.result(exchange, request);
      const result = plain === undefined ? undefined : shape(request.method, plain);
      if (result !== undefined) return `{"jsonrpc":"2.0","id":${JSON.stringify(request.id)},"result":${result}}`;
      return JSON.stringify(
        errorResponse(request.id, jsonRpcCodes.methodNotFound, `Method not found: ${request.method.slice(0, 100)}`),
      );
    } catch (thrown) {
      const { code, message, data } = mcpError(thrown);
      if (data.code === 'internal')
        this.log.error({ err: thrown, requestId: exchange.ctx.requestId }, 'an MCP request failed');
      return JSON.stringify(errorResponse(request.id, code, message, data as JsonObject));
    }
  }

  private async result(
    { ctx, options, takesTasks: asTask }: McpExchange,
    { method, params }: JsonRpcRequest,
  ): Promise<string | undefined> {
    switch (method) {
      case 'tools/call':
        return JSON.stringify(await this.tools.call(ctx, readToolCall(params), asTask));
      case 'tools/list':
        return pageText(await this.tools.list(ctx, options, cursorOf(params)));
      case 'initialize':
        return JSON.stringify({
          protocolVersion: negotiate(isJsonObject(params) ? params.protocolVersion : undefined),
          capabilities,
          serverInfo,
          instructions,
        });
      case 'ping':
        return '{}';
      default:
        return undefined;
    }
  }
}

/** The cursor that `tools/list` params go on from; undefined for the first page. */
function cursorOf(params: unknown): unknown {
  return isJsonObject(params) ? params.cursor : undefined;
}

/** One element of a body: a request, a notification, or what is wrong with it. */
export type Incoming =
  | { readonly kind: 'request'; readonly request: JsonRpcRequest & { id: JsonRpcId } }
  | { readonly kind: 'notification'; readonly request: JsonRpcRequest }
  | { readonly kind: 'invalid'; readonly response: string };

/** Reads one message. A response of the client is read as a notification: nobody waits for it. MCP allows no null ids. */
export function readMessage(value: unknown): Incoming {
  if (
    isJsonObject(value) &&
    value.jsonrpc === '2.0' &&
    !('method' in value) &&
    ('result' in value || 'error' in value)
  ) {
    return { kind: 'notification', request: { method: 'response' } };
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
