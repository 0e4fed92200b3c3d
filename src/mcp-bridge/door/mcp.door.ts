import { Inject, Injectable } from '@nestjs/common';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { readText, requireJson } from '../../platform/http/body.js';
import { whenGone } from '../../platform/http/caller-gone.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../../platform/http/http.types.js';
import { limitHeaders, refusalHeaders } from '../../platform/http/limit-headers.js';
import { isAllowedOrigin, type Reachable } from '../../platform/http/server/origin-check.js';
import { problemStatus } from '../../platform/http/problem.js';
import { reachableAt } from '../../policy/auth.service.js';
import type { CallContext } from '../../kernel/call-context.js';
import { ContextService } from '../../policy/context.service.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import { errorResponse, jsonRpcCodes, parseJson } from '../../protocol/jsonrpc.js';
import type { JsonObject } from '../../kernel/json.js';
import { UpstreamsService } from '../../upstreams/upstreams.service.js';
import { eraOf } from './era.js';
import { faceOf, gatewayFace, type Face } from './face.js';
import { LegacyMcp } from './mcp-legacy.js';
import type { McpExchange } from './mcp-dispatch.js';
import { ResourceMetadataDoor } from './resource-metadata.door.js';
import { McpModern } from './mcp-modern.js';
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
    private readonly legacy: LegacyMcp,
    private readonly modern: McpModern,
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
    try {
      if (!isAllowedOrigin(request.headers, this.reachable))
        throw new RialtoError('denied', { message: 'this Origin or Host may not call the gateway' });
      const ctx = { ...(await this.contexts.open(request, 'mcp')), tellLimit: limitHeaders(response) };
      const options = { ...listOptions(target.query), ...(only !== undefined && { only }) };
      const exchange: McpExchange = { ctx, options, face: await this.faceFor(ctx, only) };
      if (request.method === 'POST') await this.post(exchange, request, response, session);
      else await this.legacy.handleSession(exchange, request, response, session);
    } catch (error) {
      refuse(request, response, RialtoError.from(error), this.metadata.challenge(target.path.replace(/\/$/, '')));
    }
  }

  /** Returns the self-description of the door. Throws `not_found` for a server that the caller may not see. */
  private async faceFor(ctx: CallContext, only: string | undefined): Promise<Face> {
    if (only === undefined) return gatewayFace;
    const { servers } = this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx));
    const server = servers.find(({ row }) => row.serverId === only);
    if (!server || !(await this.upstreams.mayDiscover(ctx, only)))
      throw new RialtoError('not_found', { message: 'no such MCP server' });
    return faceOf(server);
  }

  private async post(
    exchange: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    session: string | undefined,
  ): Promise<void> {
    requireJson(request);
    const parsed = parseJson(await readText(request, this.settings.RIALTO_MAX_BODY_BYTES));
    if (!parsed.ok)
      return sendError(response, 400, errorResponse(null, jsonRpcCodes.parseError, `Parse error: ${parsed.reason}`));
    const body: unknown = parsed.value;
    const era = session === undefined ? eraOf(request.headers, body) : 'legacy';
    if (era !== 'legacy') {
      // In the 2026-07-28 revision, the client cancels a request by closing the connection.
      const ctx = { ...exchange.ctx, signal: whenGone(response)() };
      const alive = { ...exchange, ctx, headers: request.headers };
      if (era === 'hot') return this.modern.serveHot(alive, request, response, body as JsonObject);
      return this.modern.serve(alive, request, response, body);
    }
    return this.legacy.post(exchange, request, response, body, session);
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
function refuse(request: DoorRequest, response: DoorResponse, error: RialtoError, challenge: string): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const { message, data } = mcpError(error);
  const status = problemStatus[error.code];
  if (status === 401) response.setHeader('WWW-Authenticate', challenge);
  for (const [name, value] of Object.entries(refusalHeaders(data))) response.setHeader(name, value);
  const code = errorCodes[error.code].public && status < 500 && status !== 400 ? -32_000 : mcpError(error).code;
  sendError(response, status, errorResponse(null, code, message, { ...data, requestId: request.requestId }));
}

function sendError(response: DoorResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'Content-Length': Buffer.byteLength(text),
    })
    .end(text);
}
