import { EventStream } from '../../platform/http/streams/event-stream.js';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { unreadAnswers } from './unread-answers.js';

/** What may wait for its reader before the answer. */
const maxUnread = 1_048_576;
const headers = { 'Cache-Control': 'no-store' };
/** Proxies close connections on which nothing is said for a minute (nginx, load balancers); streams of A2A say something as often. */
const firstSignMs = 5_000;
const signMs = 15_000;

/** True when the client reads JSON answers and does not name streams before them; a client that says nothing does. */
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
 * One answer to one POST: plain JSON, unless something has to be said before it (progress) or the client only reads
 * streams. The first word decides.
 */
export class McpReply {
  private stream?: EventStream;
  private next?: NodeJS.Timeout;

  constructor(
    private readonly request: DoorRequest,
    private readonly response: DoorResponse,
  ) {}

  /** Whether something can be said before the answer. */
  get streams(): boolean {
    return acceptsStream(this.request);
  }

  /** Does what may take long: a client that names streams gets the headers of one after some seconds, and a comment now and then. */
  async whileWorking<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!/text\/event-stream/.test(this.request.headers.accept ?? '')) return work();
    const beat = (): void => {
      if (this.response.destroyed || this.response.writableEnded) return;
      this.opened().write(': keep-alive\n\n');
      this.next = setTimeout(beat, signMs).unref();
    };
    this.next = setTimeout(beat, firstSignMs).unref();
    try {
      return await work();
    } finally {
      clearTimeout(this.next);
    }
  }

  /** Sends a notification ahead of the answer; dropped for a client that does not read streams, or reads too slowly. */
  notify(method: string, params: unknown): void {
    this.say({ jsonrpc: '2.0', method, params });
  }

  /** Sends a message ahead of the answer, as `notify` does. */
  say(message: object): void {
    if (
      !this.streams ||
      this.response.destroyed ||
      this.response.writableEnded ||
      (this.stream?.writableLength ?? 0) > maxUnread
    )
      return;
    this.opened().write(frameOf(JSON.stringify(message)));
  }

  /** Ends with the JSON text of a response or of a batch of responses. */
  end(text: string, status = 200): void {
    if (this.response.destroyed) return;
    if (this.stream || (status === 200 && !prefersJson(this.request))) {
      this.opened().end(frameOf(text));
    } else {
      this.response
        .writeHead(status, {
          ...headers,
          'Content-Type': 'application/json',
          ...(status === 503 && { 'Retry-After': '5' }),
          'Content-Length': Buffer.byteLength(text),
        })
        .end(text);
    }
    unreadAnswers.watch(this.response);
  }

  /** Acknowledges notifications. */
  accepted(): void {
    this.response.writeHead(202, { ...headers, 'Content-Length': 0 }).end();
  }

  private opened(): EventStream {
    if (this.stream) return this.stream;
    this.stream = new EventStream(this.response);
    this.stream.open();
    return this.stream;
  }
}

function frameOf(data: string): string {
  return `event: message\ndata: ${data}\n\n`;
}
