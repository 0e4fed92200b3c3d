import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { trimEnd } from '../../kernel/text.js';
import { ByteCollector } from '../../platform/byte-collector.js';
import { SafeFetch, type SafeStream } from '../../platform/http/outbound/safe-fetch.js';
import { withReason } from '../../platform/http/outbound/unreachable.js';
import { credentialsOf, CredentialRemover } from '../../platform/secrets/credential-remover.js';
import type { Secret } from '../../platform/secrets/vault.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { completionOf, CompletionReader, type Completion } from '../../protocol/chat/completion.js';
import { parseJson } from '../../protocol/json-text.js';
import { SseParser } from '../../protocol/sse.js';
import { ExecutorSecrets } from '../../registry/executor-secrets.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { lessDemanding, pauseBefore } from './model-retry.js';

const maxBytes = 16_777_216;
const maxRefusal = 65_536;

const texts = {
  remote_transport: 'the model server sent no complete answer',
  remote_timeout: 'the model server did not answer in time',
  remote_invalid_response: 'the answer of the model server could not be read',
  url_not_allowed: 'the address of the model server may not be called',
} as const;

export interface ModelCall {
  readonly agent: PublishedAgent;
  /** The body with all optional members; members that the server does not support are removed. */
  readonly request: JsonObject;
  /** Deadline on the clock of Clock.elapsed. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/**
 * Sends requests to models behind OpenAI-compatible endpoints. The text of a refusal goes only to the log, because it
 * may quote the key.
 */
@Injectable()
export class ModelClient {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly secrets: ExecutorSecrets,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Yields the text of the model as it arrives, and returns the complete answer. Retries while no text has arrived and
   * there is time. Throws `rate_limited`, `remote_error` with its status, `remote_transport`, `remote_timeout`,
   * `remote_invalid_response`, `url_not_allowed`.
   */
  async *complete(call: ModelCall): AsyncGenerator<string, Completion> {
    const { secret: key, url } = await this.secrets.secretsOf(call.agent.id);
    if (url === undefined) throw new RialtoError('internal', { message: 'the agent has no address of a model server' });
    const endpoint = endpointOf(url);
    const remover = new CredentialRemover([...(key ? [key.reveal()] : []), ...credentialsOf(endpoint)]);
    let { request } = call;
    for (let attempt = 1; ;) {
      const answer = await this.postRequest(call, request, { endpoint, key }).catch((error: unknown) =>
        withCallerText(error),
      );
      if (!(answer instanceof RialtoError) && answer.status >= 200 && answer.status < 300)
        return yield* withoutCredentials(readAnswer(answer), remover);
      const { status, refusalText } = answer instanceof RialtoError ? {} : await this.refused(call, answer, remover);
      const reduced = status === undefined ? undefined : lessDemanding(request, status, refusalText ?? '');
      if (reduced) {
        request = reduced;
        continue;
      }
      const retryAfter = answer instanceof RialtoError ? undefined : answer.headers['retry-after'];
      const leftMs = call.until - systemClock.elapsed();
      const isTemporary = !(answer instanceof RialtoError) || answer.code === 'remote_transport';
      const pause = pauseBefore(attempt++, { status, retryAfter }, { now: systemClock.now(), leftMs });
      if (pause === undefined || !isTemporary)
        throw answer instanceof RialtoError ? answer : modelRefusal(answer.status);
      await sleep(pause, undefined, { signal: call.signal });
    }
  }

  private postRequest(
    { until, signal }: ModelCall,
    request: JsonObject,
    { endpoint, key }: { endpoint: string; key: Secret | undefined },
  ) {
    return this.safeFetch.stream({
      method: 'POST',
      url: endpoint,
      headers: {
        'Content-Type': 'application/json',
        Accept: 'text/event-stream, application/json',
        'User-Agent': 'rialto',
        ...(key && { Authorization: `Bearer ${key.reveal()}` }),
      },
      body: JSON.stringify(request),
      deadlineMs: Math.max(1, until - systemClock.elapsed()),
      maxBytes,
      signal,
    });
  }

  private async refused({ agent }: ModelCall, answer: SafeStream, remover: CredentialRemover) {
    const { status } = answer;
    const refusalText = remover.clean(await readBody(answer, maxRefusal).catch(() => ''));
    // Servers quote parts of a key that they do not know.
    const shown = status === 401 || status === 403 ? {} : { said: refusalText.slice(0, 500) };
    this.log.warn({ agent: agent.name, status, ...shown }, 'a model server refused a request');
    return { status, refusalText };
  }
}

/** Removes credentials from the text, because a model may quote the request. */
async function* withoutCredentials(
  speech: AsyncGenerator<string, Completion>,
  remover: CredentialRemover,
): AsyncGenerator<string, Completion> {
  const pieces = remover.pieces();
  try {
    for (;;) {
      const { value, done } = await speech.next();
      const text = done ? pieces.end() : pieces.push(value);
      if (text !== '') yield text;
      if (done) return remover.clean(value);
    }
  } finally {
    await speech.return(undefined as never); // a reader that stops early closes the connection
  }
}

/** Reads the answer: a stream of chunks, or the complete answer of a server that does not stream. */
async function* readAnswer(answer: SafeStream): AsyncGenerator<string, Completion> {
  try {
    if (/^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '')) return yield* streamed(answer);
    const completion = completionOf(parseAnswer(await readBody(answer, maxBytes)));
    yield completion.text;
    return completion;
  } catch (error) {
    throw withCallerText(error);
  }
}

async function* streamed({ body }: SafeStream): AsyncGenerator<string, Completion> {
  const reader = new CompletionReader();
  const parser = new SseParser();
  try {
    for await (const bytes of body)
      for (const { data } of parser.push(bytes)) {
        if (data.trim() === '[DONE]') return reader.completion();
        const text = reader.addChunk(parseAnswer(data));
        if (text !== '') yield text;
      }
  } finally {
    body.destroy();
  }
  if (!reader.isFinished) throw new RialtoError('remote_transport');
  return reader.completion();
}

function parseAnswer(text: string) {
  const found = parseJson(text);
  if (!found.ok) throw new RialtoError('remote_invalid_response');
  return found.value;
}

async function readBody({ body }: SafeStream, limit: number): Promise<string> {
  const collector = new ByteCollector();
  for await (const chunk of body) {
    collector.add(chunk);
    if (collector.isShredded) throw new RialtoError('remote_invalid_response');
    if (collector.size > limit) break;
  }
  body.destroy();
  return collector.bytes.toString('utf8').slice(0, limit);
}

/** Returns the URL for chat completions; keeps the query, because some servers have their version in it. */
function endpointOf(url: string): string {
  const endpoint = new URL(url);
  endpoint.pathname = `${trimEnd(endpoint.pathname, '/')}/chat/completions`;
  return endpoint.href;
}

/**
 * Returns a failure with a text for the caller of the agent, with the reason but without the address; an error with a
 * text of its own keeps it.
 */
function withCallerText(error: unknown): RialtoError {
  const known = RialtoError.from(error);
  const hasOwnText = known.message !== errorCodes[known.code].title && known.code !== 'url_not_allowed';
  if (!(known.code in texts) || hasOwnText) return known;
  return new RialtoError(known.code, {
    message: withReason(texts[known.code as keyof typeof texts], error),
    cause: error,
  });
}

function modelRefusal(status: number): RialtoError {
  const data = { upstreamStatus: status };
  if (status === 429)
    return new RialtoError('rate_limited', { message: 'the model server accepts no more requests for now', data });
  const more = status === 401 || status === 403 ? ': it refuses the key of this agent' : '';
  return new RialtoError('remote_error', { message: `the model server answered ${status}${more}`, data });
}
