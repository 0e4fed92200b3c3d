import { refusalHeaders } from '../platform/http/limit-headers.js';
import { Inject, Injectable } from '@nestjs/common';
import { AnswerBudget } from '../platform/http/shares/answer-budget.js';
import type { DoorResponse } from '../platform/http/http.types.js';
import { endWithText } from '../platform/http/text-answer.js';
import { EventStream } from '../platform/http/streams/event-stream.js';
import { SseStreams } from '../platform/http/streams/sse-streams.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { formatEvent } from '../protocol/sse.js';
import type { StreamedEvent } from '../tasks/task.service.js';
import { stringifyLong, weigh } from '../platform/turns.js';

/** Sends a JSON document as the whole answer. */
export function sendJson(
  response: DoorResponse,
  status: number,
  body: unknown,
  contentType = 'application/json',
): void {
  sendText(response, status, JSON.stringify(body), contentType);
}

function sendText(response: DoorResponse, status: number, text: string, contentType: string): void {
  endWithText(response, status, { 'Content-Type': contentType, 'Cache-Control': 'no-store' }, text);
}

/** Sends an error as the only event of a stream, for a client that reads only streams. */
export function sendErrorEvent(response: DoorResponse, body: unknown): void {
  const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' };
  endWithText(response, 200, headers, formatEvent({ event: 'error', data: JSON.stringify(body) }));
}

/** Sets the headers of an error; they do not depend on its body. */
export function setErrorHeaders(response: DoorResponse, status: number, error: RialtoError): void {
  if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer realm="rialto"');
  if (status === 503) response.setHeader('Retry-After', '5');
  for (const [name, value] of Object.entries(refusalHeaders(error.data))) response.setHeader(name, value);
}

/** Frames of one binding. */
export interface Framing {
  /** Data of an event. */
  readonly event: (event: StreamedEvent['body']) => unknown;
  /** Data of an error after the first event. */
  readonly error: (error: unknown) => unknown;
}

/** How long a stream waits for its first event before it sends the headers, in milliseconds. */
const firstEventWaitMs = 1_000;

/** Writes answers that may be large; limits the memory of each caller's answers. */
@Injectable()
export class Replies {
  constructor(
    private readonly streams: SseStreams,
    private readonly budget: AnswerBudget,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Logs a failure of the gateway itself; the errors of callers are in their answers. */
  logFailure(err: unknown, requestId: string): void {
    if (RialtoError.from(err).code === 'internal') this.log.error({ err, requestId }, 'a request failed');
  }

  /**
   * Sends a result as the whole answer. Throws `rate_limited` and `unavailable` when the pending answers use too much
   * memory.
   */
  async sendResult(
    response: DoorResponse,
    status: number,
    body: unknown,
    contentType = 'application/json',
  ): Promise<void> {
    const weight = await weigh(body);
    await this.budget.waitForShare(response, weight);
    const text = await stringifyLong(body, weight);
    if (!response.destroyed) sendText(response, status, text, contentType);
  }

  /** Opens the stream of an answer, and counts it until it closes. Throws `rate_limited`. */
  openStream(ctx: CallContext, response: DoorResponse): EventStream {
    const stream = new EventStream(response);
    this.streams.hold(ctx, stream, { hint: true });
    return stream;
  }

  /**
   * Sends a stream. Waits a moment for the first event before the headers, so that an earlier error is thrown and
   * becomes a plain error. Waits for slow readers. Ends the source when the reader has left.
   */
  async sendStream(
    ctx: CallContext,
    response: DoorResponse,
    events: AsyncGenerator<StreamedEvent, void>,
    framing: Framing,
  ): Promise<void> {
    const stream = this.openStream(ctx, response);
    const send = async (event: StreamedEvent): Promise<boolean> => {
      const weight = await weigh(event.body);
      const release = await this.budget.part(response, weight, ctx);
      const data = await stringifyLong(framing.event(event.body), weight);
      return stream.send(frameOf(event.seq, data)).finally(release);
    };
    try {
      const opening = events.next();
      if ((await Promise.race([opening, firstEventTimeout()])) === undefined) {
        stream.writeHead();
        stream.flushHeaders();
      }
      const first = await opening;
      if (response.writableEnded || response.destroyed) return;
      if (!stream.headersSent) stream.writeHead();
      if (!first.done && !(await send(first.value))) return;
      for await (const event of events) if (!(await send(event))) return;
    } catch (error) {
      if (!stream.headersSent) throw error;
      stream.write(formatEvent({ event: 'error', data: JSON.stringify(framing.error(error)) }));
    } finally {
      await events.return();
      if (stream.headersSent) stream.end();
    }
  }
}

function firstEventTimeout(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, firstEventWaitMs, undefined).unref());
}

function frameOf(seq: number | undefined, data: string): string {
  return formatEvent({ id: seq === undefined ? undefined : String(seq), data });
}
