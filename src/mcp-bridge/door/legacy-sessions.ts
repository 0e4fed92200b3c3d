import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { errorResponse } from '../../protocol/jsonrpc.js';
import { McpSessionStore, type McpSession } from '../sessions/mcp-session.store.js';
import { askableOf } from './legacy-peers.js';
import { negotiate, type McpExchange } from './mcp-dispatch.js';
import { acceptsStream, McpReply } from './mcp-reply.js';
import { McpStreams } from './mcp-streams.js';

const notAcceptable = 'Not Acceptable: a GET accepts text/event-stream';
const sessionHeader = 'mcp-session-id';

/** Opens, finds and ends the sessions of clients of the 2025 era, and opens their standing streams. */
@Injectable()
export class LegacySessions {
  constructor(
    private readonly store: McpSessionStore,
    private readonly streams: McpStreams,
  ) {}

  /**
   * Returns the session of a POST: a new one for a request to initialize, else the one that the request names;
   * undefined when it names none. Throws `not_found` for an unknown id or the id of another caller.
   */
  sessionOf(
    exchange: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    body: unknown,
    bound: string | undefined,
  ): Promise<McpSession | undefined> {
    if (isInitialize(body, bound)) return this.openSession(exchange, request, response, body);
    return this.findSession(exchange, request, bound);
  }

  /** Opens the standing stream of a session (GET), or ends the session (DELETE). */
  async serve(
    exchange: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    bound: string | undefined,
  ): Promise<void> {
    const session = await this.findSession(exchange, request, bound);
    if (!session) {
      response.setHeader('Allow', 'POST');
      throw new RialtoError('method_not_allowed', { message: 'GET and DELETE need the Mcp-Session-Id of a session' });
    }
    if (request.method === 'DELETE') {
      await this.store.endSession(exchange.ctx, session.id);
      response.writeHead(204).end();
    } else if (acceptsStream(request)) this.streams.openStream(exchange.ctx, session.id, response);
    else new McpReply(request, response).end(refusal(notAcceptable), 406);
  }

  private async openSession(
    { ctx }: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    body: JsonObject,
  ): Promise<McpSession> {
    const params = isJsonObject(body.params) ? body.params : {};
    const session = await this.store.openSession(ctx, {
      protocolVersion: negotiate(params.protocolVersion),
      client: nameOf(params.clientInfo),
      capabilities: askableOf(params.capabilities),
    });
    response.setHeader('Mcp-Session-Id', session.id);
    delete request.headers['mcp-protocol-version'];
    return session;
  }

  /**
   * Returns the session; undefined when no id was given. Throws `not_found` for an unknown id or the id of another
   * caller.
   */
  private async findSession(
    { ctx }: McpExchange,
    request: DoorRequest,
    bound: string | undefined,
  ): Promise<McpSession | undefined> {
    const header = request.headers[sessionHeader];
    const id = bound ?? (typeof header === 'string' ? header : undefined);
    if (id === undefined) return undefined;
    const session = await this.store.find(ctx, id);
    if (!session) throw new RialtoError('not_found', { message: 'Session not found', hint: 'initialize again' });
    return session;
  }
}

/**
 * True for a request to initialize, which opens a session; a notification of that name does not. On the URL of a
 * session, `initialize` only negotiates again.
 */
function isInitialize(body: unknown, bound: string | undefined): body is JsonObject {
  if (bound !== undefined || !isJsonObject(body)) return false;
  return body.jsonrpc === '2.0' && body.method === 'initialize' && isRequestId(body.id);
}

/** True for the id of a request. */
export function isRequestId(id: Json | undefined): id is string | number | bigint {
  return typeof id === 'string' || typeof id === 'number' || typeof id === 'bigint';
}

/** Returns name and version of a client, for people who inspect its session. */
function nameOf(client: Json | undefined): string {
  if (!isJsonObject(client)) return '';
  return [client.name, client.version].filter((text) => typeof text === 'string').join(' ');
}

/** Returns the text of a transport error, with the code that the official SDK uses. */
export function refusal(message: string): string {
  return JSON.stringify(errorResponse(null, -32_000, message));
}
