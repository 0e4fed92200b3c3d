import type { DoorResponse } from '../platform/http/http.types.js';
import { sseHeaders, writePatiently, type SseStreams } from '../platform/http/sse-streams.js';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { StreamedEvent } from '../tasks/task.service.js';

/** A JSON document as the whole answer. */
export function sendJson(
  response: DoorResponse,
  status: number,
  body: unknown,
  contentType = 'application/json',
): void {
  const text = JSON.stringify(body);
  const bytes = Buffer.byteLength(text);
  response
    .writeHead(status, { 'Content-Type': contentType, 'Cache-Control': 'no-store', 'Content-Length': bytes })
    // One byte a character: ASCII, which Node need not encode.
    .end(text, bytes === text.length ? 'latin1' : 'utf8');
}

/** Headers that an error brings with it, whatever its body is. */
export function setErrorHeaders(response: DoorResponse, status: number, error: RialtoError): void {
  const retryAfter = error.data?.retryAfterSeconds;
  if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer realm="rialto"');
  if (typeof retryAfter === 'number') response.setHeader('Retry-After', String(retryAfter));
  else if (status === 503) response.setHeader('Retry-After', '5');
  if (status === 413) response.setHeader('Connection', 'close');
}

/** How one binding writes a frame of a stream. */
export interface Framing {
  /** The data of an event. */
  readonly event: (event: StreamedEvent['body']) => unknown;
  /** The data of an error that came after the first event. */
  readonly error: (error: unknown) => unknown;
}

/** How long a stream may have nothing to say before its reader learns that it is open. */
const silenceMs = 1_000;

/**
 * Answers with a stream. The first event is awaited before the headers for a moment, so that an error before it is a plain error
 * (it is thrown). A reader that is slow is waited for, one that is gone ends the source.
 */
export async function sendStream(
  streams: SseStreams,
  ctx: CallContext,
  response: DoorResponse,
  events: AsyncGenerator<StreamedEvent, void>,
  framing: Framing,
): Promise<void> {
  try {
    streams.hold(ctx, response, { hint: true });
    const opening = events.next();
    if ((await Promise.race([opening, silence()])) === undefined) response.writeHead(200, sseHeaders).flushHeaders();
    const first = await opening;
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent) response.writeHead(200, sseHeaders);
    if (!first.done && !(await writePatiently(response, frameOf(first.value, framing)))) return;
    for await (const event of events) if (!(await writePatiently(response, frameOf(event, framing)))) return;
  } catch (error) {
    if (!response.headersSent) throw error;
    await writePatiently(response, `event: error\ndata: ${JSON.stringify(framing.error(error))}\n\n`);
  } finally {
    await events.return();
    if (response.headersSent) response.end();
  }
}

function silence(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, silenceMs, undefined).unref());
}

function frameOf({ seq, body }: StreamedEvent, { event }: Framing): string {
  const id = seq === undefined ? '' : `id: ${seq}\n`;
  return `${id}data: ${JSON.stringify(event(body))}\n\n`;
}
