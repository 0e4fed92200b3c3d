import type { Socket } from 'node:net';
import { WebSocket, type ClientOptions } from 'ws';
import { RialtoError } from '../../kernel/errors.js';
import { checkUrl, targetOf } from './address.js';
import { safeConnector, urlNotAllowed, type OutboundPolicy } from './safe-connect.js';

const handshakeMs = 10_000;
const noSubprotocol = 'Server sent no subprotocol';

export interface SafeSocketOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Asked for; a server that knows none is spoken to without. */
  readonly subprotocol: string;
  /** Of one message; a longer one ends the connection. */
  readonly maxBytes: number;
}

/** The address that the rules for URLs know: a WebSocket begins as a request of HTTP (RFC 6455 section 1.7). */
export function httpOf(url: string): string {
  return url.replace(/^ws(?=s?:\/\/)/i, 'http');
}

/**
 * An open WebSocket, by the rules of every byte that leaves Rialto: URL and every address checked, no redirects, no compression. Throws
 * `url_not_allowed`, and `remote_transport` when it does not open within 10 s.
 */
export async function openSafeSocket(
  url: string,
  policy: OutboundPolicy,
  options: SafeSocketOptions,
): Promise<WebSocket> {
  const refusal = checkUrl(httpOf(url), policy);
  if (refusal !== undefined) throw urlNotAllowed(refusal);
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
    followRedirects: false,
    createConnection: createConnection as unknown as ClientOptions['createConnection'],
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

function asRefused(error: unknown): RialtoError {
  if (error instanceof RialtoError) return error;
  return new RialtoError('remote_transport', { message: 'the WebSocket could not be opened', cause: error });
}
