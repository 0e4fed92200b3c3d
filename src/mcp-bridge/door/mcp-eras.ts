import { Inject, Injectable } from '@nestjs/common';
import type { JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { readText, requireJson } from '../../platform/http/body.js';
import { whenGone } from '../../platform/http/caller-gone.js';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { errorResponse, jsonRpcCodes } from '../../protocol/jsonrpc.js';
import { eraOf } from './era.js';
import type { McpExchange } from './mcp-dispatch.js';
import { LegacySessions } from './legacy-sessions.js';
import { LegacyMcp } from './mcp-legacy.js';
import { McpModern } from './mcp-modern.js';
import { parseLongJson } from '../../platform/turns.js';
import { endWithText } from '../../platform/http/text-answer.js';

/** Serves each request in the era of the protocol that its client speaks. */
@Injectable()
export class McpEras {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly sessions: LegacySessions,
    private readonly legacy: LegacyMcp,
    private readonly modern: McpModern,
  ) {}

  /**
   * Serves a request of an authenticated caller. Throws RialtoError for a request that does not reach the protocol.
   * @param session id of the session in the path, which is of the 2025 era.
   */
  async serve(
    exchange: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    session: string | undefined,
  ): Promise<void> {
    if (request.method !== 'POST') return this.sessions.serve(exchange, request, response, session);
    requireJson(request);
    const parsed = await parseLongJson(await readText(request, this.settings.RIALTO_MAX_BODY_BYTES));
    if (!parsed.ok)
      return sendError(response, 400, errorResponse(null, jsonRpcCodes.parseError, `Parse error: ${parsed.reason}`));
    const body: unknown = parsed.value;
    const era = session === undefined ? eraOf(request.headers, body) : 'legacy';
    if (era === 'legacy') return this.legacy.servePost(exchange, request, response, body, session);
    // In the 2026-07-28 revision, the client cancels a request by closing the connection.
    const ctx = { ...exchange.ctx, signal: whenGone(response)() };
    const alive = { ...exchange, ctx, headers: request.headers };
    if (era === 'hot') return this.modern.serveHot(alive, request, response, body as JsonObject);
    return this.modern.serve(alive, request, response, body);
  }
}

/** Ends a request with a JSON-RPC error. */
export function sendError(response: DoorResponse, status: number, body: unknown): void {
  const headers = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' };
  endWithText(response, status, headers, JSON.stringify(body));
}
