import { Inject, Injectable } from '@nestjs/common';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../../platform/http/http.types.js';
import { limitHeaders, refusalHeaders } from '../../platform/http/limit-headers.js';
import { isAllowedOrigin, type Reachable } from '../../platform/http/server/origin-check.js';
import { problemStatus } from '../../platform/http/problem.js';
import { readRpcId } from '../../platform/http/rpc-id.js';
import { reachableAt } from '../../policy/auth.service.js';
import type { CallContext } from '../../kernel/call-context.js';
import { ContextService } from '../../policy/context.service.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import { errorResponse, type JsonRpcId } from '../../protocol/jsonrpc.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { descriptionOf, gatewayDescription, type ServerDescription } from './server-description.js';
import { McpEras, sendError } from './mcp-eras.js';
import type { McpExchange } from './mcp-dispatch.js';
import { ResourceMetadataDoor } from './resource-metadata.door.js';
import type { ListOptions } from '../tools/tool-call.types.js';

const nameModes = new Set(['portable', 'canonical', 'both']);

/**
 * The MCP doors `/mcp`, `/mcp/servers/{id}` and `/api/mcp/{sessionId}`: Streamable HTTP, with both eras of the
 * protocol at one URL.
 */
@Injectable()
export class McpDoor {
  private readonly reachable: Reachable;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly contexts: ContextService,
    private readonly eras: McpEras,
    private readonly upstreams: UpstreamsService,
    private readonly metadata: ResourceMetadataDoor,
  ) {
    this.reachable = reachableAt(settings);
  }

  /** Returns the rows for the route table of the front door. */
  routes(): HotRoute[] {
    const methods = ['POST', 'GET', 'DELETE'];
    const handle: HotRoute['handle'] = (request, response, target, params) =>
      this.handle(request, response, target, params);
    return [
      {
        template: '/mcp',
        methods,
        cors: true,
        summary: 'MCP, Streamable HTTP',
        match: (path) => (path === '/mcp' || path === '/mcp/' ? {} : undefined),
        handle,
      },
      {
        template: '/mcp/servers/{id}',
        methods,
        cors: true,
        summary: 'One MCP server, by its own names',
        match: (path) => serverAt(path),
        handle,
      },
      {
        template: '/api/mcp/{sessionId}',
        methods,
        cors: true,
        summary: 'MCP, Streamable HTTP, bound to a session',
        match: (path) => sessionOf(path),
        handle,
      },
    ];
  }

  private async handle(
    request: DoorRequest,
    response: DoorResponse,
    target: Target,
    { sessionId: session, id: only }: Partial<Record<string, string>>,
  ): Promise<void> {
    // The refusal of an unknown caller keeps the id null, because its body is not read.
    let id: JsonRpcId = null;
    try {
      if (!isAllowedOrigin(request.headers, this.reachable))
        throw new RialtoError('denied', { message: 'this Origin or Host may not call the gateway' });
      const ctx = { ...(await this.contexts.openContext(request, 'mcp')), tellLimit: limitHeaders(response) };
      const exchange = await this.exchangeFor(ctx, target.query, only).catch(async (error: unknown) => {
        id = await readRpcId(request, this.settings.RIALTO_MAX_BODY_BYTES);
        throw error;
      });
      await this.eras.serve(exchange, request, response, session);
    } catch (error) {
      const challenge = this.metadata.challenge(target.path.replace(/\/$/, ''));
      sendRefusal(request, response, RialtoError.from(error), { id, challenge });
    }
  }

  /** Reads the URL of a request. Throws `invalid_params`, and `not_found` as `descriptionFor` does. */
  private async exchangeFor(ctx: CallContext, query: URLSearchParams, only: string | undefined): Promise<McpExchange> {
    const options = { ...listOptions(query), ...(only !== undefined && { only }) };
    return { ctx, options, description: await this.descriptionFor(ctx, only) };
  }

  /** Returns the self-description of the door. Throws `not_found` for a server that the caller may not see. */
  private async descriptionFor(ctx: CallContext, only: string | undefined): Promise<ServerDescription> {
    if (only === undefined) return gatewayDescription;
    const { servers } = this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx));
    const server = servers.find(({ row }) => row.serverId === only);
    if (!server || !(await this.upstreams.mayDiscover(ctx, only)))
      throw new RialtoError('not_found', { message: 'no such MCP server' });
    return descriptionOf(server);
  }
}

/**
 * Reads the list options: `?names=` selects the form of the names, `?agents=a,b` and `?servers=c,d` filter the list.
 * Throws `invalid_params`.
 */
function listOptions(query: URLSearchParams): ListOptions {
  const names = query.get('names');
  if (names !== null && !nameModes.has(names)) {
    throw new RialtoError('invalid_params', {
      violations: [{ field: 'names', description: 'must be portable, canonical or both' }],
      message: 'names must be portable, canonical or both',
    });
  }
  return {
    ...(names !== null && { names: names as ListOptions['names'] }),
    agents: setOf(query.get('agents')),
    servers: setOf(query.get('servers')),
  };
}

function setOf(ids: string | null): ReadonlySet<string> | undefined {
  return ids === null ? undefined : new Set(ids.split(',').filter((id) => id !== ''));
}

function serverAt(path: string): Record<string, string> | undefined {
  const match = /^\/mcp\/servers\/([a-z0-9_-]{1,32})\/?$/.exec(path);
  return match ? { id: match[1]! } : undefined;
}

/** Returns the session id in a path; `servers` and `tools` are routes of the management API and never session ids. */
function sessionOf(path: string): Record<string, string> | undefined {
  const match = /^\/api\/mcp\/(?!(?:servers|tools)\/?$)([\w-]{1,100})\/?$/.exec(path);
  return match ? { sessionId: match[1]! } : undefined;
}

/**
 * Ends a request that did not reach the protocol: sends an HTTP status, and a JSON-RPC error for clients that read the
 * body.
 */
function sendRefusal(
  request: DoorRequest,
  response: DoorResponse,
  error: RialtoError,
  { id, challenge }: { readonly id: JsonRpcId; readonly challenge: string },
): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const { message, data } = mcpError(error);
  const status = problemStatus[error.code];
  if (status === 401) response.setHeader('WWW-Authenticate', challenge);
  for (const [name, value] of Object.entries(refusalHeaders(data))) response.setHeader(name, value);
  const code = errorCodes[error.code].public && status < 500 && status !== 400 ? -32_000 : mcpError(error).code;
  sendError(response, status, errorResponse(id, code, message, { ...data, requestId: request.requestId }));
}
