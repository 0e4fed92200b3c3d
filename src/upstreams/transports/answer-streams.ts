import type {
  FetchLike,
  JSONRPCMessage,
  JSONRPCRequest,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { markDeparted } from '../../platform/http/outbound/departed.js';

/**
 * How long a stream may stay broken, counted from the first retry; a server that only closed the connection is back by
 * then.
 */
const resumeMs = 5_000;

/** Stream that will carry the answer to one request. */
interface AnswerStream {
  readonly request: JSONRPCRequest['id'];
  /** False for the 2026-07-28 revision, which cannot resume a stream (Streamable HTTP, resumability). */
  readonly mayResume: boolean;
  /** Tells the waiting caller that there will be no answer. */
  readonly fail: () => void;
  lastEvent: string;
  isFailed?: boolean;
  timer?: NodeJS.Timeout;
}

/**
 * Tracks the streams of one connection on which the server answers single requests. Works around the SDK: it reports no
 * error when a stream ends before the answer, and endlessly retries to resume a stream with event ids.
 */
export class AnswerStreams {
  /** Streams with event ids. */
  private readonly resumable = new Set<AnswerStream>();

  /** Wraps `fetch` so that a lost stream is not resumed. */
  wayOut(out: FetchLike): FetchLike {
    return async (input, init) => {
      const from = init?.method === 'GET' ? new Headers(init.headers).get('last-event-id') : null;
      const stream = from === null ? undefined : [...this.resumable].find(({ lastEvent }) => lastEvent === from);
      if (!stream) return out(input, init);
      // Status 405 is the only refusal that makes the SDK stop its retries.
      if (stream.isFailed || !stream.mayResume) return new Response(null, { status: 405 });
      stream.timer ??= setTimeout(stream.fail, resumeMs).unref();
      const answer = await out(input, init);
      if (answer.ok) stopTimer(stream);
      else if (answer.status < 500) stream.fail();
      return answer;
    };
  }

  /**
   * Makes each request of a connection fail with `remote_transport` as soon as its stream has ended or cannot be
   * resumed. The request is not sent again.
   */
  watchConnection(connection: Transport): void {
    const send = Reflect.get(connection, 'send');
    connection.send = (message, options) => {
      if ('method' in message && 'id' in message)
        return this.sendRequest(
          (onError, ...sent) => send.apply(withErrorListener(connection, onError), sent),
          message,
          options,
        );
      this.recordCancellation(message);
      return send.call(connection, message, options);
    };
  }

  /** Sends a request; the promise only rejects, because the answer arrives as a message. */
  private sendRequest(
    send: (onError: (error: Error) => void, ...sent: Parameters<Transport['send']>) => Promise<void>,
    message: JSONRPCRequest,
    options: TransportSendOptions = {},
  ): Promise<void> {
    return new Promise((_, reject) => {
      // An answer that arrived before the end is read first.
      const end = (error: RialtoError): void => {
        stream.isFailed = true;
        stopTimer(stream);
        setImmediate(() => reject(error));
      };
      const fail = (): void => end(streamLost());
      const onError = (error: Error): void => {
        if (isOfResponse(error)) end(new RialtoError('remote_invalid_response', { message: noResponse }));
      };
      // The SDK sets a signal for each request of the 2026-07-28 revision, and for no other.
      const mayResume = options.requestSignal === undefined;
      const stream: AnswerStream = { request: message.id, mayResume, fail, lastEvent: '' };
      send(onError, message, {
        ...options,
        onresumptiontoken: (event) => {
          stream.lastEvent = event;
          this.resumable.add(stream);
          options.onresumptiontoken?.(event);
        },
        onRequestStreamEnd: () => {
          this.resumable.delete(stream);
          fail();
          options.onRequestStreamEnd?.();
        },
      }).catch(reject);
    });
  }

  /** Stops resuming the stream of a canceled request. */
  private recordCancellation(message: JSONRPCMessage): void {
    if (!('method' in message) || message.method !== 'notifications/cancelled') return;
    for (const stream of this.resumable) if (stream.request === message.params?.requestId) stream.isFailed = true;
  }
}

/**
 * Wraps a connection so that a listener receives its errors too. The errors of a stream name no request, and the SDK
 * continues to wait for the answer.
 */
function withErrorListener(connection: Transport, onError: (error: Error) => void): Transport {
  const onerror = (error: Error): void => {
    onError(error);
    connection.onerror?.(error);
  };
  return new Proxy(connection, {
    get: (of, name) => (name === 'onerror' ? onerror : (Reflect.get(of, name) as unknown)),
  });
}

/**
 * Returns whether an error of the SDK says that a response could not be parsed. The SDK tries the schema of a request
 * first: a malformed response lacks the method, but not the id.
 */
function isOfResponse(error: Error): boolean {
  const [issue] = (error as Partial<ParseError>).issues ?? [];
  const wrong = issue?.errors?.[0]?.map(({ path }) => path[0]);
  return wrong !== undefined && wrong.includes('method') && !wrong.includes('id');
}

interface ParseError {
  readonly issues: readonly { readonly errors?: readonly (readonly { readonly path: readonly unknown[] }[])[] }[];
}

function stopTimer(stream: AnswerStream): void {
  clearTimeout(stream.timer);
  stream.timer = undefined;
}

const noResponse = 'the MCP server sent something that is not a JSON-RPC response';

/** The server already had the request, and may have executed it. */
function streamLost(): RialtoError {
  const error = new RialtoError('remote_transport', {
    message: 'the MCP server closed the connection before it answered',
  });
  markDeparted(error);
  return error;
}
