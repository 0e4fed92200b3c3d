import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { PostEnd } from './thread-plan.js';

const maxReplyBytes = 4_096;
const longestId = 200;

/** Result of a post. */
export type ThreadPosted = PostEnd & {
  readonly messageId?: string;
  /** Error code of the gateway. */
  readonly error?: string;
};

export interface ThreadMessage {
  readonly url: string;
  readonly token?: string;
  /** Idempotency key, the same for every attempt of one message: the receiver can detect repeats. */
  readonly mark: string;
  readonly body: JsonObject;
}

/** Posts one message to a conversation thread; does not follow redirects. */
@Injectable()
export class ThreadPost {
  constructor(
    private readonly safeFetch: SafeFetch,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_SEND_TIMEOUT_MS'>,
  ) {}

  /**
   * Sends the message. Never rejects: a failure is a result without a status, or with the status of a broken
   * response.
   */
  send(message: ThreadMessage): Promise<ThreadPosted> {
    return this.exchange(message).catch((error: unknown) => ({ error: RialtoError.from(error).code }));
  }

  private async exchange({ url, token, mark, body }: ThreadMessage): Promise<ThreadPosted> {
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'rialto-threads',
      'Idempotency-Key': mark,
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    };
    const deadlineMs = this.settings.A2A_CONTINUATION_SEND_TIMEOUT_MS;
    const limits = { deadlineMs, maxBytes: maxReplyBytes, purpose: 'webhook' as const };
    const answer = await this.safeFetch.beginning({
      method: 'POST',
      url,
      headers,
      body: JSON.stringify(body),
      ...limits,
    });
    const { status } = answer;
    if (status < 200 || status >= 300)
      return { status, error: `status_${status}`, retryAfter: answer.headers['retry-after'] };
    const messageId = messageIdOf(answer.body.toString());
    // A receiver may echo the token as its message id: such an id is not stored.
    return { status, ...(messageId !== undefined && !containsToken(messageId, token) && { messageId }) };
  }
}

const containsToken = (text: string, token = ''): boolean => token !== '' && text.includes(token);

/** Reads the `id` of a JSON reply. */
function messageIdOf(reply: string): string | undefined {
  const parsed = parseJson(reply);
  const id = parsed.ok && isJsonObject(parsed.value) ? parsed.value.id : undefined;
  return typeof id === 'string' && id !== '' && id.length <= longestId ? storableText(id) : undefined;
}
