import type {
  FetchLike,
  JSONRPCMessage,
  JSONRPCRequest,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { markDeparted } from '../../platform/http/outbound/departed.js';

/** Since the first try: a server that only let go of a connection is back by then. */
const resumeMs = 5_000;

/** On which the answer to one request is to come. */
interface AnswerStream {
  readonly request: JSONRPCRequest['id'];
  /** The 2026-07-28 revision has no way to go on with a stream (Streamable HTTP, resumability). */
  readonly mayResume: boolean;
  /** Whoever waits for the answer is told that there is none. */
  readonly lose: () => void;
  lastEvent: string;
  isLost?: boolean;
  late?: NodeJS.Timeout;
}

/**
 * The streams of one line on which its server answers single requests. The SDK tells nobody of one that ends before the answer, and tries for
 * ever to go on with one whose events had ids.
 */
export class AnswerStreams {
  /** Whose events have ids. */
  private readonly resumable = new Set<AnswerStream>();

  /** Lets nobody go on with a stream that is lost. */
  wayOut(out: FetchLike): FetchLike {
    return async (input, init) => {
      const from = init?.method === 'GET' ? new Headers(init.headers).get('last-event-id') : null;
      const stream = from === null ? undefined : [...this.resumable].find(({ lastEvent }) => lastEvent === from);
      if (!stream) return out(input, init);
      // The one refusal that ends the SDK's trying.
      if (stream.isLost || !stream.mayResume) return new Response(null, { status: 405 });
      stream.late ??= setTimeout(stream.lose, resumeMs).unref();
      const answer = await out(input, init);
      if (answer.ok) stopped(stream);
      else if (answer.status < 500) stream.lose();
      return answer;
    };
  }

  /** Has each request of a line end with `remote_transport` as soon as its stream did, or cannot be gone on with; it is not sent again. */
  watch(line: Transport): void {
    const send = Reflect.get(line, 'send');
    line.send = (message, options) => {
      if ('method' in message && 'id' in message)
        return this.ask((told, ...sent) => send.apply(telling(line, told), sent), message, options);
      this.said(message);
      return send.call(line, message, options);
    };
  }

  /** Settles for a request that failed alone: its answer is a message. */
  private ask(
    send: (told: (error: Error) => void, ...sent: Parameters<Transport['send']>) => Promise<void>,
    message: JSONRPCRequest,
    options: TransportSendOptions = {},
  ): Promise<void> {
    return new Promise((_, reject) => {
      // An answer that came before the end is read first.
      const end = (error: RialtoError): void => {
        stream.isLost = true;
        stopped(stream);
        setImmediate(() => reject(error));
      };
      const lose = (): void => end(lost());
      const told = (error: Error): void => {
        if (isOfResponse(error)) end(new RialtoError('remote_invalid_response', { message: noResponse }));
      };
      // The SDK has a signal for each request of the 2026-07-28 revision, and for no other.
      const mayResume = options.requestSignal === undefined;
      const stream: AnswerStream = { request: message.id, mayResume, lose, lastEvent: '' };
      send(told, message, {
        ...options,
        onresumptiontoken: (event) => {
          stream.lastEvent = event;
          this.resumable.add(stream);
          options.onresumptiontoken?.(event);
        },
        onRequestStreamEnd: () => {
          this.resumable.delete(stream);
          lose();
          options.onRequestStreamEnd?.();
        },
      }).catch(reject);
    });
  }

  /** To an answer that nobody waits for any more nobody goes on. */
  private said(message: JSONRPCMessage): void {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return;
    for (const stream of this.resumable) if (stream.request === message.params?.requestId) stream.isLost = true;
  }
}

/** A line whose errors somebody else is told too: those of a stream name no request, and the SDK goes on waiting for its answer. */
function telling(line: Transport, told: (error: Error) => void): Transport {
  const onerror = (error: Error): void => {
    told(error);
    line.onerror?.(error);
  };
  return new Proxy(line, { get: (of, name) => (name === 'onerror' ? onerror : (Reflect.get(of, name) as unknown)) });
}

/**
 * Whether the SDK says that what it read is no message, and that was to be a response: for a request, the first of the kinds that it tries,
 * it lacks the method, but not the id.
 */
function isOfResponse(error: Error): boolean {
  const [issue] = (error as Partial<NoMessage>).issues ?? [];
  const wrong = issue?.errors?.[0]?.map(({ path }) => path[0]);
  return wrong !== undefined && wrong.includes('method') && !wrong.includes('id');
}

interface NoMessage {
  readonly issues: readonly { readonly errors?: readonly (readonly { readonly path: readonly unknown[] }[])[] }[];
}

function stopped(stream: AnswerStream): void {
  clearTimeout(stream.late);
  stream.late = undefined;
}

const noResponse = 'the MCP server answered what is no response';

/** The server had the request by then, and may have done what it asks for. */
function lost(): RialtoError {
  const error = new RialtoError('remote_transport', {
    message: 'the MCP server ended the connection before its answer',
  });
  markDeparted(error);
  return error;
}
