import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../../platform/bus/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { Cursors } from '../../platform/http/cursor.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { McpSessionStore } from '../sessions/mcp-session.store.js';

const pollMs = 5_000;
/** A person may have to answer, so the wait is long. */
const timeoutMs = 3_600_000;

/**
 * Questions to clients of the 2025 era: a question is sent on the stream of a call, and the answer comes in a separate
 * POST, perhaps to another process.
 */
@Injectable()
export class PeerQuestions {
  private readonly waiting = new Map<string, (answer: JsonObject) => void>();

  constructor(
    private readonly sessions: McpSessionStore,
    private readonly notices: Notices,
    private readonly cursors: Cursors,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Sends a question and waits for the answer. Throws `remote_error` with the client's error instead of a result, and
   * `canceled` when the call ends first.
   * @param send sends a message on the stream.
   */
  async askClient(
    session: string,
    send: (request: JsonObject) => void,
    { method, params }: { method: string; params: JsonObject },
    until: AbortSignal | undefined,
  ): Promise<JsonObject> {
    const id = newId();
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = until ? AbortSignal.any([until, timeout]) : timeout;
    // Polls too, because a notice may be lost.
    const polling = setInterval(() => void this.deliverAnswer(id), pollMs).unref();
    const answer = await new Promise<JsonObject>((resolve, reject) => {
      const requestId = this.cursors.encode(scopeOf(session), [id]);
      const giveUp = (): void => {
        send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
        reject(new RialtoError('canceled', { message: 'the call ended before its answer' }));
      };
      if (signal.aborted) return reject(new RialtoError('canceled'));
      signal.addEventListener('abort', giveUp, { once: true });
      this.waiting.set(id, (answer) => {
        signal.removeEventListener('abort', giveUp);
        resolve(answer);
      });
      send({ jsonrpc: '2.0', id: requestId, method, params });
    }).finally(() => {
      clearInterval(polling);
      this.waiting.delete(id);
    });
    if (isJsonObject(answer.result)) return answer.result;
    throw clientRefusal(isJsonObject(answer.error) ? answer.error : {});
  }

  /** Handles a client's answer; ignores an answer to a question that was not asked in its session. */
  async answered({ org }: CallContext, session: string, answer: JsonObject): Promise<void> {
    const id = this.questionOf(session, answer.id);
    if (id === undefined) return;
    const waiting = this.waiting.get(id);
    if (waiting) return waiting(answer);
    if (await this.sessions.keepAnswer(session, id, answer))
      this.notices.tell(undefined, 'mcp.answered', { orgId: org.id, questionId: id });
  }

  @OnNotice('mcp.answered')
  answerStored({ questionId }: Notice<'mcp.answered'>): void {
    if (this.waiting.has(questionId)) void this.deliverAnswer(questionId);
  }

  private async deliverAnswer(question: string): Promise<void> {
    try {
      const answer = await this.sessions.takeStoredAnswer(question);
      if (answer) this.waiting.get(question)?.(answer);
    } catch (err) {
      this.log.warn({ err }, 'the answer of an MCP client could not be read');
    }
  }

  private questionOf(session: string, id: Json | undefined): string | undefined {
    try {
      return this.cursors.decode(scopeOf(session), typeof id === 'string' ? id : '', 1)[0];
    } catch {
      return undefined;
    }
  }
}

/** Binds a question to its session, so that the client of another session cannot answer it. */
function scopeOf(session: string): string {
  return `mcp-question ${session}`;
}

function clientRefusal({ code, message, data }: JsonObject): RialtoError {
  const text = typeof message === 'string' ? message : 'the client refused';
  const relayed = {
    code: Number.isInteger(code) ? code! : -32_603,
    message: text,
    ...(data !== undefined && { data }),
  };
  return new RialtoError('remote_error', { message: text, data: { relayed } });
}
