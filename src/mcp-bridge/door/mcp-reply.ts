import { EventStream } from '../../platform/http/streams/event-stream.js';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { endWithText } from '../../platform/http/text-answer.js';
import { formatEvent } from '../../protocol/sse.js';
import { unreadAnswers } from './unread-answers.js';

/** Largest number of bytes that may wait for the reader before the answer. */
const maxUnread = 1_048_576;
const headers = { 'Cache-Control': 'no-store' };
/**
 * Milliseconds to the first keep-alive comment and between comments. Proxies close a connection without data for one
 * minute (nginx, load balancers); A2A streams send comments at the same rate.
 */
const firstKeepAliveMs = 5_000;
const keepAliveMs = 15_000;

/** True when the client reads JSON answers and does not name streams first; also when it sends no Accept header. */
function prefersJson({ headers: { accept } }: DoorRequest): boolean {
  if (accept === undefined) return true;
  const json = accept.search(/application\/json|application\/\*|\*\/\*/);
  const stream = accept.indexOf('text/event-stream');
  return json >= 0 && (stream < 0 || json < stream);
}

export function acceptsStream(request: DoorRequest): boolean {
  return /text\/event-stream|\*\/\*/.test(request.headers.accept ?? '');
}

/**
 * One answer to one POST: plain JSON, unless a message must be sent before it (progress) or the client reads only
 * streams. The first message decides.
 */
export class McpReply {
  private stream?: EventStream;
  private next?: NodeJS.Timeout;

  constructor(
    private readonly request: DoorRequest,
    private readonly response: DoorResponse,
  ) {}

  /** True when messages can be sent before the answer. */
  get streams(): boolean {
    return acceptsStream(this.request);
  }

  /**
   * Runs work that may be slow. A client that names streams gets the headers of a stream after 5 s, and then a comment
   * every 15 s.
   */
  async whileWorking<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!/text\/event-stream/.test(this.request.headers.accept ?? '')) return work();
    const beat = (): void => {
      if (this.response.destroyed || this.response.writableEnded) return;
      this.openedStream().write(': keep-alive\n\n');
      this.next = setTimeout(beat, keepAliveMs).unref();
    };
    this.next = setTimeout(beat, firstKeepAliveMs).unref();
    try {
      return await work();
    } finally {
      clearTimeout(this.next);
    }
  }

  /** Sends a notification before the answer; drops it when the client does not read streams, or reads too slowly. */
  sendNotification(method: string, params: unknown): void {
    this.say({ jsonrpc: '2.0', method, params });
  }

  /** Sends a message before the answer; drops it in the same cases as `sendNotification`. */
  say(message: object): void {
    if (
      !this.streams ||
      this.response.destroyed ||
      this.response.writableEnded ||
      (this.stream?.writableLength ?? 0) > maxUnread
    )
      return;
    this.openedStream().write(frameOf(JSON.stringify(message)));
  }

  /** Ends with the JSON text of a response or of a batch of responses. */
  end(text: string, status = 200): void {
    if (this.response.destroyed) return;
    if (this.stream || (status === 200 && !prefersJson(this.request))) {
      this.openedStream().end(frameOf(text));
    } else {
      const retry = status === 503 && { 'Retry-After': '5' };
      endWithText(this.response, status, { ...headers, 'Content-Type': 'application/json', ...retry }, text);
    }
    unreadAnswers.watchAnswer(this.response);
  }

  /** Acknowledges notifications. */
  accepted(): void {
    this.response.writeHead(202, { ...headers, 'Content-Length': 0 }).end();
  }

  private openedStream(): EventStream {
    if (this.stream) return this.stream;
    this.stream = new EventStream(this.response);
    this.stream.writeHead();
    return this.stream;
  }
}

function frameOf(data: string): string {
  return formatEvent({ event: 'message', data });
}
