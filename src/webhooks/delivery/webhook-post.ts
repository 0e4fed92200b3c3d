import { Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { isDatabaseAway } from '../../platform/database/outage.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { withReason } from '../../platform/http/outbound/unreachable.js';
import { rineHeader, rineScheme, signatureHeaders } from '../../protocol/webhook-signature.js';
import type { Tried } from './delivery.store.js';
import type { StoredConfig } from '../configs/push-config.store.js';
import { keptReply } from './reply.js';
import { WebhookTokens } from '../configs/webhook-tokens.js';

const timeoutMs = 10_000;
/** Larger than a stored reply, so that a repeated secret is found as a whole. */
const maxReplyBytes = 16_384;

export interface Post {
  readonly id: string;
  readonly config: StoredConfig;
  /** Secrets that sign the post, one signature each. */
  readonly secrets: readonly string[];
  readonly mediaType: string;
  readonly body: string;
}

export type Posted = Tried & {
  readonly kind: 'posted';
  readonly retryAfter?: string;
  /** Why there is no answer, for a person. It is not stored. */
  readonly detail?: string;
};

/** Makes one attempt: a POST without redirects, with a limit of ten seconds. */
@Injectable()
export class WebhookPost {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly tokens: WebhookTokens,
  ) {}

  /**
   * Sends a post. A failure is a result without a status, or with an incomplete reply. Rejects when the database of the
   * gateway is not available, before anything was sent.
   */
  async send(post: Post): Promise<Posted> {
    const begun = systemClock.elapsed();
    const tried = await this.exchange(post).catch((error: unknown) => {
      if (isDatabaseAway(error)) throw error;
      const known = RialtoError.from(error);
      return { error: known.code, ...(errorCodes[known.code].public && { detail: withReason(known.message, known) }) };
    });
    return { kind: 'posted', ...tried, durationMs: systemClock.elapsed() - begun };
  }

  private async exchange(post: Post): Promise<Omit<Posted, 'kind' | 'durationMs'>> {
    const { config, body } = post;
    const authorization = await this.authorizationOf(post);
    const headers = headersOf(post, authorization);
    const limits = { deadlineMs: timeoutMs, maxBytes: maxReplyBytes, purpose: 'webhook' as const };
    const answer = await this.safeFetch.beginning({ method: 'POST', url: config.url, headers, body, ...limits });
    const { status, isCut } = answer;
    const retryAfter = answer.headers['retry-after'];
    const reply = keptReply(
      answer.body.toString(),
      { url: config.url, secrets: [config.token, authorization?.credentials] },
      isCut,
    );
    return {
      status,
      ...(reply !== '' && { reply }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...((status < 200 || status >= 300) && { error: `status_${status}` }),
    };
  }

  /**
   * The credentials of the configuration. A bearer without credentials gets a token of the gateway, which its JWKS
   * verifies.
   */
  private async authorizationOf(post: Post): Promise<Authorization | undefined> {
    const { scheme, credentials } = post.config.authentication ?? {};
    if (scheme === undefined || signsAsRine(post.config)) return undefined;
    if (credentials !== undefined) return { scheme, credentials };
    return scheme.toLowerCase() === 'bearer' ? { scheme, credentials: await this.tokens.issue(post) } : undefined;
  }
}

interface Authorization {
  readonly scheme: string;
  readonly credentials: string;
}

function headersOf(
  { id, config, secrets, mediaType, body }: Post,
  authorization?: Authorization,
): Record<string, string> {
  const { token } = config;
  return {
    'Content-Type': mediaType,
    'User-Agent': 'rialto-webhooks',
    ...signatureHeaders(secrets, { id, body, at: systemClock.now() }),
    ...(signsAsRine(config) && rineHeader(config.authentication?.credentials ?? secrets[0], body)),
    ...(token !== undefined && { 'A2A-Notification-Token': token, 'X-A2A-Notification-Token': token }),
    ...(authorization && { Authorization: `${authorization.scheme} ${authorization.credentials}` }),
  };
}

/** True for a configuration of the Rine scheme. Its credentials are a signing key, and are never sent. */
function signsAsRine({ authentication }: StoredConfig): boolean {
  return authentication?.scheme.toLowerCase() === rineScheme.toLowerCase();
}
