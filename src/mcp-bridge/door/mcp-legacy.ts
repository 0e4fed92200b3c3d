import { Injectable } from '@nestjs/common';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { ContextService } from '../../policy/context.service.js';
import type { JsonRpcId, JsonRpcRequest } from '../../protocol/jsonrpc.js';
import { errorResponse, jsonRpcCodes } from '../../protocol/jsonrpc.js';
import { BatchGate } from './mcp-batch.js';
import {
  isLegacyVersion,
  McpDispatch,
  readMcpMessage,
  type Incoming,
  type McpExchange,
  type McpResponse,
} from './mcp-dispatch.js';
import { sessionMethodsOf } from './server-description.js';
import { LegacyPeers } from './legacy-peers.js';
import { McpReply } from './mcp-reply.js';
import { isRequestId, LegacySessions, refusal } from './legacy-sessions.js';
import type { McpSession } from '../sessions/mcp-session.store.js';
import { withHeartbeat } from './progress.js';
import { RunningCalls } from './running-calls.js';

const maxBatch = 20;
/** Methods that an MCP server may answer; it may send questions and notifications to the client before its answer. */
const relayedMethods = new Set(['tools/call', 'resources/read', 'prompts/get', 'completion/complete']);
const unsupportedVersion = 'Bad Request: unsupported MCP-Protocol-Version';
const noBatches = 'Bad Request: JSON-RPC batches ended with revision 2025-06-18';

/**
 * Serves the revisions of the 2025 era with the gateway's own dispatch: the SDK's server for each request costs thirty
 * times as much. Sessions are rows; a client without a session is served statelessly.
 */
@Injectable()
export class LegacyMcp {
  constructor(
    private readonly dispatch: McpDispatch,
    private readonly sessions: LegacySessions,
    private readonly running: RunningCalls,
    private readonly peers: LegacyPeers,
    private readonly contexts: ContextService,
  ) {}

  /** Handles the messages of a POST. Throws `not_found` for an unknown session. */
  async servePost(
    exchange: McpExchange,
    request: DoorRequest,
    response: DoorResponse,
    body: unknown,
    bound: string | undefined,
  ): Promise<void> {
    const reply = new McpReply(request, response);
    const session = await this.sessions.sessionOf(exchange, request, response, body, bound);
    if (!namesKnownVersion(request)) return reply.end(refusal(unsupportedVersion), 400);
    if (Array.isArray(body)) {
      if (!mayBatch(request, session)) return reply.end(refusal(noBatches), 400);
      return reply.whileWorking(() => this.batch(exchange, session, reply, body as Json[]));
    }
    const message = readMcpMessage(body);
    if (message.kind === 'invalid') return reply.end(message.response, 400);
    if (message.kind === 'request') {
      const { text, status } = await reply.whileWorking(() => this.respond(exchange, session, reply, message.request));
      return reply.end(text, status);
    }
    await this.receiveOneWay(exchange, session, message);
    reply.accepted();
  }

  private async batch(
    exchange: McpExchange,
    session: McpSession | undefined,
    reply: McpReply,
    body: Json[],
  ): Promise<void> {
    if (body.length === 0 || body.length > maxBatch) {
      return reply.end(
        JSON.stringify(
          errorResponse(null, jsonRpcCodes.invalidRequest, `Invalid Request: a batch holds 1 to ${maxBatch} messages`),
        ),
        400,
      );
    }
    const gate = new BatchGate(() => this.contexts.admit(exchange.ctx));
    const messages = body.map((value) => gate.enter(readMcpMessage(value))).filter((message) => message !== undefined);
    const answers = await Promise.all(
      messages.map(async (message) => {
        const text = await this.answerRequest(exchange, session, reply, message);
        return text === undefined ? undefined : gate.leave(message, text);
      }),
    );
    const texts = answers.filter((text) => text !== undefined);
    if (texts.length === 0) return reply.accepted();
    reply.end(`[${texts.join(',')}]`);
  }

  private async answerRequest(
    exchange: McpExchange,
    session: McpSession | undefined,
    reply: McpReply,
    message: Incoming,
  ): Promise<string | undefined> {
    if (message.kind === 'invalid') return message.response;
    if (message.kind === 'request') return (await this.respond(exchange, session, reply, message.request)).text;
    await this.receiveOneWay(exchange, session, message);
    return undefined;
  }

  private respond(
    exchange: McpExchange,
    session: McpSession | undefined,
    reply: McpReply,
    request: JsonRpcRequest & { id: JsonRpcId },
  ): Promise<McpResponse> {
    const act =
      session &&
      sessionMethodsOf(exchange.description).includes(request.method) &&
      this.peers.sessionActOf(exchange, session, request);
    if (act)
      return this.dispatch.answerWith(exchange, request, async () => {
        await act();
        return '{}';
      });
    if (!relayedMethods.has(request.method)) return this.dispatch.respond(exchange, request);
    const token = progressTokenOf(request);
    const notify = (progress: JsonObject): void => reply.sendNotification('notifications/progress', progress);
    const call = (signal = exchange.ctx.signal) =>
      withHeartbeat(request.method === 'tools/call' ? token : undefined, notify, (relay) => {
        const peer = this.peers.peerOf(session, reply, token, relay);
        return this.dispatch.respond({ ...exchange, ctx: { ...exchange.ctx, signal, peer } }, request);
      });
    // Without a session, the client has no way to name the call and cancel it.
    return session ? this.running.runCall(exchange.ctx, session.id, request.id, call) : call();
  }

  /** Handles a message that needs no response: an answer or a notification. */
  private async receiveOneWay({ ctx }: McpExchange, session: McpSession | undefined, message: Incoming): Promise<void> {
    if (!session) return;
    if (message.kind === 'answer') return this.peers.answered(ctx, session, message.answer);
    if (message.kind !== 'notification') return;
    const { method, params } = message.request;
    if (method === 'notifications/roots/list_changed') return this.peers.forwardRootsChange(ctx, session);
    if (method !== 'notifications/cancelled' || !isJsonObject(params)) return;
    const { requestId } = params;
    if (isRequestId(requestId)) this.running.cancelAnywhere(ctx.org.id, session.id, requestId);
  }
}

function progressTokenOf({ params }: JsonRpcRequest): Json | undefined {
  const meta = isJsonObject(params) ? params._meta : undefined;
  return isJsonObject(meta) ? meta.progressToken : undefined;
}

/** False for an unknown revision in the header (MCP Streamable HTTP, protocol version header). */
function namesKnownVersion(request: DoorRequest): boolean {
  const version = request.headers['mcp-protocol-version'];
  return version === undefined || (typeof version === 'string' && isLegacyVersion(version));
}

/**
 * True when the revision allows batches. They ended with 2025-06-18; a client that names no revision uses an older one
 * (MCP Streamable HTTP, protocol version header).
 */
function mayBatch({ headers }: DoorRequest, session: McpSession | undefined): boolean {
  const version = headers['mcp-protocol-version'] ?? session?.protocolVersion;
  return version === undefined || version < '2025-06-18';
}
