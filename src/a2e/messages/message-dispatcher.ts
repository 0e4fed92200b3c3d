import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { a2eError, A2eRefusal, type Subject } from '../../protocol/a2e/errors.js';
import {
  isAnswer,
  readMessage,
  refusalOf,
  replyTo,
  type A2eMessage,
  type SentMessage,
  type Stamp,
} from '../../protocol/a2e/messages.js';
import type { A2eHandler, A2ePlugin, ListeningAgent } from './a2e-call.js';
import { McpPlugin } from './mcp-plugin.js';
import { MessageAudit } from './message-audit.js';

/** Type and id in the audit for a message that cannot be parsed. */
const unreadable = 'unreadable';

/** Passes each message to the plugin that knows its type, and records the message and its reply. */
@Injectable()
export class MessageDispatcher {
  private readonly plugins: readonly A2ePlugin[];

  constructor(
    mcp: McpPlugin,
    private readonly audit: MessageAudit,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    this.plugins = inOrder([mcp]);
  }

  /** Returns the reply to any JSON value; never throws. */
  async answerMessage(ctx: CallContext, value: unknown, agent?: ListeningAgent): Promise<SentMessage> {
    const parsed = readMessage(value);
    if (parsed.ok) return this.answerParsed(ctx, parsed.message, agent);
    const request = { type: parsed.type, id: parsed.id };
    return this.refuseMessage(ctx, request, new A2eRefusal('mcp_protocol_error', parsed.reason), 'message');
  }

  /** Returns the refusal of a message that is not handled because its sender exceeded a limit; it is not recorded. */
  turnAway(value: unknown, reason: RialtoError): SentMessage {
    const parsed = readMessage(value);
    const { type, id } = parsed.ok ? { type: parsed.message.spelling, id: parsed.message.id } : parsed;
    return refusalOf({ type, id }, stamp(), a2eError(reason, 'message'));
  }

  /** Returns the reply to a parsed message. */
  private async answerParsed(ctx: CallContext, message: A2eMessage, agent?: ListeningAgent): Promise<SentMessage> {
    const { type, spelling, id, payload } = message;
    const request = { type: spelling, id };
    const handler = handlerOf(this.plugins, type);
    if (!handler) {
      const reason = isAnswer(message)
        ? 'no question waits for this answer: ' +
          `req_id ${JSON.stringify(message.reqId ?? null)} is unknown, already answered, or withdrawn`
        : `the gateway does not know messages of type "${spelling}"`;
      return this.refuseMessage(ctx, request, new A2eRefusal('mcp_protocol_error', reason), 'message');
    }
    try {
      const answer = await handler.answer({ ctx, payload, agent });
      const reply = replyTo(request, stamp(), answer);
      await this.recordExchange(ctx, request, reply);
      return reply;
    } catch (error) {
      return this.refuseMessage(ctx, request, error, handler.subject);
    }
  }

  private async refuseMessage(
    ctx: CallContext,
    request: { type?: string; id?: string },
    thrown: unknown,
    subject: Subject,
  ): Promise<SentMessage> {
    if (!(thrown instanceof A2eRefusal) && RialtoError.from(thrown).code === 'internal')
      this.log.error({ err: thrown, requestId: ctx.requestId, type: request.type }, 'message failed');
    const error = a2eError(thrown, subject);
    const reply = refusalOf(request, stamp(), error);
    try {
      await this.recordExchange(ctx, request, reply, error.code);
      return reply;
    } catch (unrecorded) {
      return refusalOf(request, stamp(), a2eError(unrecorded, 'message'));
    }
  }

  private recordExchange(
    ctx: CallContext,
    { type = unreadable, id = unreadable }: { type?: string; id?: string },
    reply: SentMessage,
    error?: string,
  ): Promise<void> {
    return this.audit.recordMessages(ctx, [
      { type, direction: 'in', id, error },
      { type: reply.type, direction: 'out', id: reply.id, reqId: id, error },
    ]);
  }
}

/** Sorts plugins by priority, the highest first. */
export function inOrder(plugins: readonly A2ePlugin[]): readonly A2ePlugin[] {
  return [...plugins].sort((one, other) => other.priority - one.priority);
}

export function handlerOf(plugins: readonly A2ePlugin[], type: string): A2eHandler | undefined {
  return plugins.find(({ handlers }) => handlers.has(type))?.handlers.get(type);
}

function stamp(): Stamp {
  return { id: newId(), now: systemClock.now() };
}
