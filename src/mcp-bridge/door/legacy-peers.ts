import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { Notices } from '../../platform/bus/notices.js';
import type { McpExchange } from './mcp-dispatch.js';
import type { McpReply } from './mcp-reply.js';
import { McpSessionStore, type McpSession } from '../sessions/mcp-session.store.js';
import { PeerQuestions } from './peer-questions.js';
import { isToken, type RelayProgress } from './progress.js';
import { ResourceWatches } from '../sessions/resource-watches.js';
import { isLogLevel, logLevels } from '../../protocol/mcp/log-levels.js';
import type { JsonRpcRequest } from '../../protocol/jsonrpc.js';

const askable = ['sampling', 'elicitation', 'roots'] as const;
const maxCapabilities = 4_096;

type SessionAct = (() => Promise<void>) | undefined;

/** Clients of the 2025 era during one of their calls: questions and notifications go out on the stream of the call. */
@Injectable()
export class LegacyPeers {
  constructor(
    private readonly questions: PeerQuestions,
    private readonly sessions: McpSessionStore,
    private readonly watches: ResourceWatches,
    private readonly notices: Notices,
  ) {}

  /** Returns undefined for a client that does not read streams. */
  peerOf(
    session: McpSession | undefined,
    reply: McpReply,
    progressToken: Json | undefined,
    relay: RelayProgress,
  ): Peer | undefined {
    if (!reply.streams) return undefined;
    const { capabilities = {}, logLevel } = session ?? {};
    const canBeAsked = Object.keys(capabilities).length > 0;
    return {
      key: session?.id ?? newId(),
      era: 'legacy',
      wantsAlone: canBeAsked || logLevel !== undefined,
      capabilities,
      logLevel,
      ...(isToken(progressToken) && { progressToken }),
      ask: (method, params, signal) => {
        if (!session)
          return Promise.reject(
            new RialtoError('unavailable', { message: 'a client without a session cannot be asked' }),
          );
        const send = (request: JsonObject): void => reply.say(request);
        return this.questions.askClient(session.id, send, { method, params }, signal);
      },
      tell: (method, params) =>
        method === 'notifications/progress' ? relay(params) : reply.say({ jsonrpc: '2.0', method, params }),
    };
  }

  /** Handles the answer to a question that the gateway sent to the client. */
  answered(ctx: CallContext, session: McpSession, answer: JsonObject): Promise<void> {
    return this.questions.answered(ctx, session.id, answer);
  }

  /**
   * Publishes that the client's roots changed; each process informs its servers over the connections that it has for
   * this client.
   */
  forwardRootsChange({ org }: CallContext, { id, capabilities: { roots } }: McpSession): void {
    if (isJsonObject(roots) && roots.listChanged === true)
      this.notices.tell(undefined, 'mcp.roots-changed', { orgId: org.id, sessionId: id });
  }

  /**
   * Returns the action for a method that changes the session itself: its log level or its resource subscriptions.
   * Undefined for another method. Throws the errors of ResourceWatches.
   */
  sessionActOf({ ctx, options }: McpExchange, session: McpSession, { method, params }: JsonRpcRequest): SessionAct {
    switch (method) {
      case 'logging/setLevel':
        return () => this.setLevel(session, params);
      case 'resources/subscribe':
        return () => this.watches.subscribe(ctx, options, session.id, params);
      case 'resources/unsubscribe':
        return () => this.watches.unsubscribe(ctx, session.id, params);
      default:
        return undefined;
    }
  }

  /** Handles `logging/setLevel`. Throws `invalid_params`. */
  private async setLevel({ id }: McpSession, params: unknown): Promise<void> {
    const level = isJsonObject(params) ? params.level : undefined;
    if (!isLogLevel(level))
      throw new RialtoError('invalid_params', { message: `params.level must be one of ${logLevels.join(', ')}` });
    await this.sessions.setLogLevel(id, level);
  }
}

/** Keeps the capabilities for which a client can be asked; the gateway does not use the others. */
export function askableOf(capabilities: Json | undefined): JsonObject {
  if (!isJsonObject(capabilities)) return {};
  const known = askable.filter((name) => isJsonObject(capabilities[name])).map((name) => [name, capabilities[name]!]);
  const relevant = Object.fromEntries(known) as JsonObject;
  return JSON.stringify(relevant).length > maxCapabilities ? {} : relevant;
}
