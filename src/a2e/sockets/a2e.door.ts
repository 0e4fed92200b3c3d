import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { readText, requireJson } from '../../platform/http/body.js';
import { whenGone } from '../../platform/http/caller-gone.js';
import type { DoorRequest, DoorResponse, HotRoute } from '../../platform/http/http.types.js';
import type { SocketRoute } from '../../platform/http/server/socket-door.js';
import { isAllowedOrigin } from '../../platform/http/server/origin-check.js';
import { sendProblem } from '../../platform/http/problem.js';
import { reachableAt } from '../../policy/auth.service.js';
import { ContextService } from '../../policy/context.service.js';
import { AgentSockets, capabilitiesOf } from './agent-sockets.js';
import { MessageDispatcher } from '../messages/message-dispatcher.js';
import { parseLongJson, stringifyLong } from '../../platform/turns.js';

const maxMessages = 20;

/**
 * Door at `/a2e`. A POST has one message, or several that are handled in order; its answer has the replies. A GET
 * with upgrade opens a WebSocket.
 */
@Injectable()
export class A2eDoor {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly contexts: ContextService,
    private readonly messages: MessageDispatcher,
    private readonly sockets: AgentSockets,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  route(): HotRoute {
    return {
      template: '/a2e',
      methods: ['POST'],
      cors: true,
      summary: 'A2E messages of the MCP bridge; a WebSocket at the same path also has pushes and questions',
      match: isA2ePath,
      handle: (request, response) => this.handlePost(request, response),
    };
  }

  socketRoute(): SocketRoute {
    return {
      template: '/a2e',
      match: (path) => isA2ePath(path) !== undefined,
      accept: async (request, { query }) => {
        this.sockets.requireOpen();
        const ctx = await this.identify(request);
        const admit = (): void => this.contexts.admit(ctx);
        return (socket) => this.sockets.addSocket(ctx, socket, capabilitiesOf(query), admit);
      },
    };
  }

  /**
   * Identifies the caller. Throws `denied` for an Origin or Host that may not call, and the errors of
   * ContextService.openContext.
   */
  private async identify(request: DoorRequest, signal?: AbortSignal): Promise<CallContext> {
    if (!isAllowedOrigin(request.headers, reachableAt(this.settings)))
      throw new RialtoError('denied', { message: 'this Origin or Host may not call the gateway' });
    return this.contexts.openContext(request, 'a2e', signal);
  }

  private async handlePost(request: DoorRequest, response: DoorResponse): Promise<void> {
    try {
      const ctx = await this.identify(request, whenGone(response)());
      requireJson(request);
      const parsed = await parseLongJson(await readText(request, this.settings.RIALTO_MAX_BODY_BYTES));
      if (!parsed.ok) throw new RialtoError('invalid_params', { message: parsed.reason });
      const { value } = parsed;
      await sendReplies(
        response,
        Array.isArray(value) ? await this.answerAll(ctx, value) : await this.messages.answerMessage(ctx, value),
      );
    } catch (thrown) {
      const error = RialtoError.from(thrown);
      if (error.code === 'internal') this.log.error({ err: thrown, requestId: request.requestId }, 'a request failed');
      if (response.headersSent || response.destroyed) return void response.destroy();
      sendProblem(request, response, error.code, error);
    }
  }

  private async answerAll(ctx: CallContext, values: readonly unknown[]): Promise<JsonObject[]> {
    if (values.length === 0 || values.length > maxMessages)
      throw new RialtoError('invalid_params', { message: `a request must have 1 to ${maxMessages} messages` });
    const replies: JsonObject[] = [];
    for (const [index, value] of values.entries()) {
      const refused = index > 0 ? refusedBy(() => this.contexts.admit(ctx)) : undefined;
      replies.push(refused ? this.messages.turnAway(value, refused) : await this.messages.answerMessage(ctx, value));
    }
    return replies;
  }
}

function isA2ePath(path: string): Record<string, string> | undefined {
  return path === '/a2e' || path === '/a2e/' ? {} : undefined;
}

/** Returns the error that a check throws; undefined when it passes. */
function refusedBy(check: () => void): RialtoError | undefined {
  try {
    check();
    return undefined;
  } catch (thrown) {
    return RialtoError.from(thrown);
  }
}

async function sendReplies(response: DoorResponse, body: JsonObject | JsonObject[]): Promise<void> {
  const text = await stringifyLong(body);
  if (response.destroyed) return;
  response
    .writeHead(200, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'Content-Length': Buffer.byteLength(text),
    })
    .end(text);
}
