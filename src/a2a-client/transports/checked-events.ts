import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json } from '../../kernel/json.js';
import { formatEvent, SseParser, type SseEvent } from '../../protocol/sse.js';
import { faultOfEvent } from './reply-shape.js';
import { notA2a, refused, restFault } from './wire-error.js';
import { parseLongJson, stringifyShielded } from '../../platform/turns.js';

/** Bounds of a stream besides its bytes and its deadline (abuse 26). */
export interface StreamLimits {
  readonly maxEventBytes: number;
  readonly maxEvents: number;
  /** Longest time without data; heartbeats count as data. */
  readonly idleMs: number;
}

interface EventRules extends StreamLimits {
  /** Removes the envelope of an event, or throws the error that it contains. */
  readonly unwrap: (json: Json) => Json;
  /** Prepares a valid event for the SDK's reader. */
  readonly prepare: (reply: Json) => Json;
}

/**
 * Yields the events of a remote stream, each parsed, bounded and validated, ready for the SDK to read. Throws
 * `remote_timeout` when no data arrives for `idleMs`, `remote_invalid_response` for an invalid event or an exceeded
 * limit (`data.reason` `remote_stream_limit`), and `remote_error` for an error in the stream.
 */
export async function* checkedEvents(
  body: ReadableStream<Uint8Array>,
  { maxEventBytes, maxEvents, idleMs, unwrap, prepare }: EventRules,
): AsyncGenerator<string, void> {
  const parser = new SseParser({ maxEventBytes, maxLineBytes: maxEventBytes + 1_024 });
  const reader = body.getReader();
  let events = 0;
  try {
    for (;;) {
      const { done, value } = await notSilent(reader.read(), idleMs);
      if (done) return;
      for (const event of parser.push(value)) {
        if (++events > maxEvents) throw limit('the remote stream has too many events');
        const reply = await validatedOrSkipped(event, unwrap);
        if (reply !== undefined) yield formatEvent({ data: await stringifyShielded(prepare(reply)) });
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * Returns the validated event; undefined for an event with a name of its own that is not A2A, such as a heartbeat
 * (HTML, server-sent events 9.2.6).
 */
async function validatedOrSkipped(event: SseEvent, unwrap: EventRules['unwrap']): Promise<Json | undefined> {
  const isOrdinary = event.event === undefined || event.event === 'message' || event.event === 'error';
  if (isOrdinary) return validated(event, unwrap);
  try {
    return await validated(event, unwrap);
  } catch {
    return undefined;
  }
}

async function validated({ event, data }: SseEvent, unwrap: EventRules['unwrap']): Promise<Json> {
  const json = await parseLongJson(data);
  if (!json.ok) throw notA2a(json.reason);
  const remoteError = event === 'error' ? restFault(json.value) : undefined;
  if (remoteError) throw refused(remoteError);
  const reply = unwrap(json.value);
  const isEnvelope = isJsonObject(reply) && 'jsonrpc' in reply;
  const fault = faultOfEvent(isEnvelope ? (reply.result ?? null) : reply);
  if (fault !== undefined) throw notA2a(`an event of the stream is not valid: ${fault}`);
  return reply;
}

async function notSilent<T>(read: Promise<T>, idleMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    const error = new RialtoError('remote_timeout', {
      message: 'the remote stream sent nothing within the idle limit',
      data: { reason: 'idle' },
    });
    timer = setTimeout(reject, idleMs, error);
  });
  return Promise.race([read, silence]).finally(() => clearTimeout(timer));
}

function limit(message: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message, data: { reason: 'remote_stream_limit' } });
}

/** Returns a Response with these texts as its body; each text is produced when the body is read. */
export function eventStream(texts: AsyncGenerator<string, void>): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await texts.next();
        if (next.done) controller.close();
        else controller.enqueue(encoder.encode(next.value));
      },
      async cancel() {
        await texts.return();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}
