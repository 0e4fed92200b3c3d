import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket, type ClientOptions } from 'ws';
import { RialtoError } from '../../../kernel/errors.js';
import { targetOf } from './address.js';
import { requireAllowed, safeConnector, type OutboundPolicy } from './safe-connect.js';
import { withReason } from './unreachable.js';

const handshakeMs = 10_000;
const noSubprotocol = 'Server sent no subprotocol';
const maxRefusalLength = 4_096;

export interface SafeSocketOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** The requested subprotocol. When the server supports none, the connection is made without one. */
  readonly subprotocol: string;
  /** Limit of one message; a longer one ends the connection. */
  readonly maxBytes: number;
}

/** An HTTP answer instead of a WebSocket. */
export class RefusedUpgrade extends Error {
  /** @param body the beginning of the answer. */
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(`the upgrade was answered with HTTP ${status}`);
  }
}

/** The http form of a URL, for the URL rules: a WebSocket starts as an HTTP request (RFC 6455 section 1.7). */
export function httpOf(url: string): string {
  return url.replace(/^ws(?=s?:\/\/)/i, 'http');
}

/**
 * Opens a WebSocket by the same rules as every outbound request: the URL and every address are checked, no redirects,
 * no compression. Throws `url_not_allowed`, and `remote_transport` when it does not open within 10 s;
 * `data.upstreamStatus` is the HTTP status of a refusal.
 */
export async function openSafeSocket(
  url: string,
  policy: OutboundPolicy,
  options: SafeSocketOptions,
): Promise<WebSocket> {
  requireAllowed(httpOf(url), policy);
  try {
    return await opened(url, policy, options, [options.subprotocol]);
  } catch (error) {
    if ((error as Error).message !== noSubprotocol) throw asRefused(error);
    return opened(url, policy, options, []).catch((again: unknown) => Promise.reject(asRefused(again)));
  }
}

function opened(
  url: string,
  policy: OutboundPolicy,
  { headers, maxBytes }: SafeSocketOptions,
  protocols: string[],
): Promise<WebSocket> {
  const connect = safeConnector(targetOf(new URL(httpOf(url))), policy);
  const { hostname, port, protocol } = new URL(httpOf(url));
  const createConnection = (_: unknown, done: (error: Error | null, socket?: Socket) => void): void => {
    const address = hostname.replace(/^\[|\]$/g, '');
    connect({ hostname: address, host: hostname, protocol, port }, (error, socket) => done(error, socket ?? undefined));
  };
  const socket = new WebSocket(url, protocols, {
    headers,
    handshakeTimeout: handshakeMs,
    maxPayload: maxBytes,
    perMessageDeflate: false,
    // One message in each turn of the event loop: otherwise a peer that sends without pause would block others.
    allowSynchronousEvents: false,
    followRedirects: false,
    createConnection: createConnection as unknown as ClientOptions['createConnection'],
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
    socket.once('unexpected-response', (_, response) => {
      void beginningOf(response).then((body) => {
        reject(new RefusedUpgrade(response.statusCode ?? 0, body));
        socket.terminate();
      });
    });
  });
}

/** Reads the body of a refusal, as far as it arrived. */
async function beginningOf(response: IncomingMessage): Promise<string> {
  const timer = setTimeout(() => response.destroy(), handshakeMs);
  let body = '';
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      body += chunk as string;
      if (body.length >= maxRefusalLength) break;
    }
  } catch {
    // The body broke off; the part that arrived is used.
  } finally {
    clearTimeout(timer);
  }
  return body;
}

function asRefused(error: unknown): RialtoError {
  if (error instanceof RialtoError) return error;
  const { status } = error instanceof RefusedUpgrade ? error : {};
  const text = 'the WebSocket could not be opened';
  return new RialtoError('remote_transport', {
    message: status === undefined ? withReason(text, error) : `${text}: HTTP ${status}`,
    ...(status !== undefined && { data: { upstreamStatus: status } }),
    cause: error,
  });
}
