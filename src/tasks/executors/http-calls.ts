import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { withReason } from '../../platform/http/outbound/unreachable.js';
import { SafeFetch, type SafeResponse } from '../../platform/http/outbound/safe-fetch.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { signatureHeaders } from '../../protocol/webhook-signature.js';
import { ExecutorSecrets } from '../../registry/executor-secrets.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { pauseAfter } from './http-retry.js';

const timeoutMs = 10_000;
const texts = {
  remote_timeout: 'the service did not answer in time',
  remote_transport: 'the service could not be reached',
  remote_invalid_response: 'the answer of the service could not be read',
  url_not_allowed: 'the address of the service may not be called',
} as const;

/** A call to the service of an agent. A retry sends the same id and body. */
export interface Call {
  readonly id: string;
  readonly body: string;
  /** Headers with the trace and the delegation of the task. */
  readonly headers: Readonly<Record<string, string>>;
  /** Aborts a request in progress. */
  readonly signal?: AbortSignal;
  /** Ends the wait before the next retry. */
  readonly givenUp?: AbortSignal;
}

/**
 * Signed calls to the services of published agents. Error texts contain neither addresses nor bodies, because the
 * agent's caller reads them; a reason such as a refused connection contains none.
 */
@Injectable()
export class HttpCalls {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly secrets: ExecutorSecrets,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Posts the call, with retries, until the service accepts it. Throws `remote_error`, `remote_transport`,
   * `remote_timeout`, `url_not_allowed`.
   */
  async deliver(agent: PublishedAgent, call: Call): Promise<SafeResponse> {
    for (let attempt = 1; ; attempt++) {
      const end = await this.post(agent, call).catch((error: unknown) => retryable(error));
      if (!(end instanceof RialtoError) && end.status >= 200 && end.status < 300) return end;
      const known = end instanceof RialtoError ? {} : { status: end.status, retryAfter: end.headers['retry-after'] };
      const pause = pauseAfter(attempt, known, systemClock.now());
      if (pause === undefined) throw end instanceof RialtoError ? end : serviceRefusal(end.status);
      const why = end instanceof RialtoError ? end.message : `it answered ${end.status}`;
      this.log.warn(
        { agent: agent.name, call: call.id, attempt, why, pauseMs: pause },
        'the service of an agent did not accept a message; retrying',
      );
      await sleep(pause, undefined, { signal: call.givenUp });
    }
  }

  /** Makes one attempt. */
  async post(agent: PublishedAgent, { id, body, headers, signal }: Call): Promise<SafeResponse> {
    const { secret, url } = await this.secrets.secretsOf(agent.id);
    if (!secret || url === undefined)
      throw new RialtoError('internal', { message: 'the agent has no secret to sign with' });
    return this.safeFetch.request({
      method: 'POST',
      url,
      headers: {
        ...headers,
        'Content-Type': 'application/json',
        'User-Agent': 'rialto',
        ...signatureHeaders([secret.reveal()], { id, body, at: systemClock.now() }),
      },
      body,
      deadlineMs: timeoutMs,
      maxBytes: this.settings.RIALTO_MAX_BODY_BYTES,
      purpose: 'service',
      signal,
    });
  }
}

/**
 * Returns a connection error or a timeout, which a retry may solve. Throws any other error, with a text for the agent's
 * caller.
 */
function retryable(error: unknown): RialtoError {
  const { code } = RialtoError.from(error);
  if (!(code in texts)) throw error;
  const known = new RialtoError(code, { message: withReason(texts[code as keyof typeof texts], error), cause: error });
  if (code === 'remote_transport' || code === 'remote_timeout') return known;
  throw known;
}

function serviceRefusal(status: number): RialtoError {
  const more = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return new RialtoError('remote_error', { message: `the service answered ${status}${more}` });
}
