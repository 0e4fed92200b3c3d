import { Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { SafeFetch, type SafeStream } from '../platform/http/safe-fetch.js';
import type { PushConfig } from '../protocol/a2a/operations.js';
import type { Tried } from './delivery.store.js';

const timeoutMs = 10_000;
const maxReplyBytes = 4_096;
/** A reply may be longer; it is given up then. */
const maxReadBytes = 1_048_576;

export interface Post {
  readonly id: string;
  readonly config: PushConfig;
  readonly mediaType: string;
  readonly body: string;
}

export type Posted = Tried & { readonly retryAfter?: string };

/** One try: a POST that follows no redirect, over within ten seconds. */
@Injectable()
export class WebhookPost {
  constructor(private readonly safeFetch: SafeFetch) {}

  /** Never rejects: a failure is an answer without a status, or one that broke off. */
  async send({ id, config, mediaType, body }: Post): Promise<Posted> {
    const begun = systemClock.elapsed();
    const tried = await this.exchange(config, { ...headersOf(id, config), 'Content-Type': mediaType }, body).catch(
      (error: unknown) => ({ error: RialtoError.from(error).code }),
    );
    return { ...tried, durationMs: systemClock.elapsed() - begun };
  }

  private async exchange(
    config: PushConfig,
    headers: Record<string, string>,
    body: string,
  ): Promise<Omit<Posted, 'durationMs'>> {
    const limits = { deadlineMs: timeoutMs, maxBytes: maxReadBytes };
    const answer = await this.safeFetch.stream({ method: 'POST', url: config.url, headers, body, ...limits });
    const { status } = answer;
    const retryAfter = answer.headers['retry-after'];
    const reply = storableText(withoutSecrets(await beginningOf(answer), config), maxReplyBytes);
    return {
      status,
      ...(reply !== '' && { reply }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...((status < 200 || status >= 300) && { error: `status_${status}` }),
    };
  }
}

function headersOf(id: string, { token, authentication }: PushConfig): Record<string, string> {
  const credentials = authentication?.credentials;
  return {
    'User-Agent': 'rialto-webhooks',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(systemClock.now() / 1_000)),
    ...(token !== undefined && { 'A2A-Notification-Token': token, 'X-A2A-Notification-Token': token }),
    ...(credentials !== undefined && { Authorization: `${authentication!.scheme} ${credentials}` }),
  };
}

/** The first bytes of the reply. Throws when it breaks off before, for then nobody knows whether it was taken. */
async function beginningOf({ body }: SafeStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= maxReplyBytes) break;
    }
  } finally {
    body.destroy();
  }
  return Buffer.concat(chunks).subarray(0, maxReplyBytes).toString('utf8');
}

/** A receiver may say back what it was sent; it is not kept. */
function withoutSecrets(reply: string, { token, authentication }: PushConfig): string {
  const secrets = [token, authentication?.credentials].filter((secret) => secret !== undefined && secret !== '');
  return secrets.reduce<string>((text, secret) => text.replaceAll(secret!, '[redacted]'), reply);
}
