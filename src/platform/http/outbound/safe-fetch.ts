import type { WebSocket } from 'ws';
import { Readable } from 'node:stream';
import { BoundedMap } from '../../../kernel/bounded-map.js';
import { RialtoError } from '../../../kernel/errors.js';
import { ByteCollector } from '../../byte-collector.js';
import { parseUrl } from './address.js';
import { OriginConnections, requireAllowed, urlNotAllowed, type OutboundPolicy } from './safe-connect.js';
import {
  BeginningExchange,
  BufferedExchange,
  ExchangeDeadline,
  StreamedExchange,
  type Exchange,
} from './safe-exchange.js';
import { requestHeaders } from './safe-headers.js';
import { codingsOf, inflated } from './safe-inflate.js';
import { nextHop, type Hop } from './safe-redirect.js';
import type { SafeBeginning, SafeRequest, SafeResponse, SafeStream } from './safe-request.js';
import { httpOf, openSafeSocket, type SafeSocketOptions } from './safe-socket.js';
import { webFetch, type FetchLimits } from './safe-web-fetch.js';

export type { OutboundPolicy } from './safe-connect.js';
export type { SafeBeginning, SafeRequest, SafeResponse, SafeStream } from './safe-request.js';
export type { FetchLimits } from './safe-web-fetch.js';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
type Method = (typeof methods)[number];

const maxOrigins = 512;
const maxAllowed = 1_000;

function methodOf(request: SafeRequest): Method {
  const method = methods.find((known) => known === request.method);
  if (method === undefined) throw new RialtoError('invalid_params', { message: 'This HTTP method is not allowed' });
  return method;
}

function deadlineOf({ deadlineMs, signal }: SafeRequest): ExchangeDeadline {
  return new ExchangeDeadline(deadlineMs, signal === undefined ? [] : 'aborted' in signal ? [signal] : signal);
}

/** The content codings to remove from the body; none for a response that cannot have a body. */
function layersOf({ status, headers }: Exchange, method: string): string[] {
  return method === 'HEAD' || status === 204 || status === 304 ? [] : codingsOf(headers['content-encoding']);
}

function withoutCoding({ headers }: Exchange): Record<string, string> {
  delete headers['content-encoding'];
  delete headers['content-length'];
  return headers;
}

async function collect(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const collector = new ByteCollector();
  for await (const chunk of body) collector.add(chunk);
  return collector.bytes;
}

/** @param mayBreakOff the compressed data may be incomplete. */
async function beginningOf(
  inflating: AsyncIterable<Buffer>,
  maxBytes: number,
  mayBreakOff: boolean,
): Promise<Pick<SafeBeginning, 'body' | 'isCut'>> {
  const collector = new ByteCollector();
  let left = maxBytes;
  try {
    for await (const chunk of inflating) {
      collector.add(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) break;
    }
  } catch (error) {
    if (!mayBreakOff) throw error;
  }
  return { body: collector.bytes, isCut: mayBreakOff || left <= 0 };
}

/**
 * The only way by which bytes leave Rialto (section 4.6 of the threat model; AN-39, RE-28, abuse 20 to 27): it checks
 * the URL and every address, applies one deadline, limits the bytes, and pools keep-alive connections per origin.
 * Errors are `url_not_allowed`, `remote_timeout`, `remote_transport`, `remote_invalid_response`, `canceled`, and
 * `invalid_params` for a bad request.
 */
export class SafeFetch {
  private readonly origins = new Map<string, OriginConnections>();
  /** URLs that `checkUrl` allowed: each call of a tool checks the same one again. */
  private readonly allowed = new BoundedMap<string, true>(maxAllowed);
  private closed = false;

  constructor(private readonly policy: OutboundPolicy) {}

  /** Throws `url_not_allowed` when the URL itself shows that it may not be called. */
  checkUrl(url: string): void {
    if (this.allowed.get(url)) return;
    requireAllowed(httpOf(url), this.policy);
    this.allowed.set(url, true);
  }

  /** Sends a request and reads the whole answer, with any status. */
  async request(request: SafeRequest): Promise<SafeResponse> {
    const method = methodOf(request);
    const deadline = deadlineOf(request);
    try {
      const make = (): BufferedExchange => new BufferedExchange(request.maxBytes, method === 'HEAD');
      const { exchange, url } = await this.followRedirects(request, method, deadline, make);
      const { status } = exchange;
      const { bytes } = exchange.body;
      const codings = layersOf(exchange, method);
      if (codings.length === 0 || bytes.length === 0) return { status, headers: exchange.headers, body: bytes, url };
      const body = await collect(inflated(Readable.from([bytes]), codings, request.maxBytes));
      if (deadline.failure !== undefined) throw deadline.failure;
      return { status, headers: withoutCoding(exchange), body, url };
    } finally {
      deadline.release();
    }
  }

  /**
   * Sends a request and reads the first `maxBytes` of the answer. A longer answer is not an error; its socket is
   * closed. Throws when the answer breaks off before that: it is then unknown whether the request was received.
   */
  async beginning(request: SafeRequest): Promise<SafeBeginning> {
    const method = methodOf(request);
    const deadline = deadlineOf(request);
    try {
      const make = (): BeginningExchange => new BeginningExchange(request.maxBytes, method === 'HEAD');
      const { exchange, url } = await this.followRedirects(request, method, deadline, make);
      const { status, isCut } = exchange;
      const { bytes } = exchange.body;
      const codings = layersOf(exchange, method);
      if (codings.length === 0 || bytes.length === 0)
        return { status, headers: exchange.headers, body: bytes, isCut, url };
      const inflating = inflated(Readable.from([bytes]), codings, Infinity);
      const beginning = await beginningOf(inflating, request.maxBytes, isCut);
      return { status, headers: withoutCoding(exchange), ...beginning, url };
    } finally {
      deadline.release();
    }
  }

  /**
   * Sends a request and returns at the head of the answer. The deadline also covers the body; `idleMs` limits silence
   * in it.
   */
  async stream(request: SafeRequest & { idleMs?: number }): Promise<SafeStream> {
    const method = methodOf(request);
    const deadline = deadlineOf(request);
    try {
      const make = (): StreamedExchange => new StreamedExchange(request.maxBytes, method === 'HEAD', request.idleMs);
      const { exchange, url } = await this.followRedirects(request, method, deadline, make);
      exchange.settled = () => deadline.release();
      if (exchange.over) deadline.release();
      const codings = layersOf(exchange, method);
      if (codings.length === 0) return { status: exchange.status, headers: exchange.headers, body: exchange.body, url };
      const body = inflated(exchange.body, codings, request.maxBytes);
      return { status: exchange.status, headers: withoutCoding(exchange), body, url };
    } catch (error) {
      deadline.release();
      throw error;
    }
  }

  /** Returns this client as a `fetch` for the official SDKs, with fixed limits. Redirects are never followed. */
  asFetch(limits: FetchLimits): typeof globalThis.fetch {
    return webFetch(this, limits);
  }

  /** Opens a WebSocket, which the caller must close. Throws `url_not_allowed` and `remote_transport`. */
  socket(url: string, options: SafeSocketOptions): Promise<WebSocket> {
    return openSafeSocket(url, this.policy, options);
  }

  /** Ends every connection at once, with the requests that still run. */
  async close(): Promise<void> {
    this.closed = true;
    const origins = [...this.origins.values()];
    this.origins.clear();
    await Promise.all(origins.map((connections) => connections.close()));
  }

  private async followRedirects<E extends Exchange>(
    request: SafeRequest,
    method: Method,
    deadline: ExchangeDeadline,
    make: () => E,
  ): Promise<{ exchange: E; url: string }> {
    const url = parseUrl(request.url);
    if (url === undefined) throw urlNotAllowed('malformed', this.policy);
    let hop: Hop = { url, headers: requestHeaders(request.headers) };
    for (let left = method === 'GET' || method === 'HEAD' ? (request.redirects ?? 0) : 0; ; left--) {
      const exchange = make();
      try {
        const connections = this.connectionsTo(hop.url);
        deadline.guard(exchange);
        if (deadline.failure === undefined) {
          const path = hop.url.pathname + hop.url.search;
          connections.dispatch({ path, method, headers: hop.headers, body: request.body }, exchange);
        }
        await exchange.ready;
      } catch (error) {
        if (exchange.isUnanswered && request.purpose !== undefined) this.policy.unanswered?.(request.purpose);
        // The caller did not give the host of a redirect.
        const isRedirect = hop.url !== url && RialtoError.from(error).code === 'url_not_allowed';
        throw isRedirect ? urlNotAllowed('redirect to a forbidden URL', this.policy) : error;
      }
      const next = left > 0 ? nextHop(exchange, hop, this.policy) : undefined;
      if (next === undefined) return { exchange, url: hop.url.href };
      exchange.fail(new RialtoError('canceled'));
      hop = next;
    }
  }

  /**
   * The connections of the URL's origin. They exist only for an origin that passed the check, so a repeated call
   * costs one map lookup.
   */
  private connectionsTo(url: URL): OriginConnections {
    if (this.closed) throw new RialtoError('unavailable');
    if (url.username !== '' || url.password !== '') throw urlNotAllowed('userinfo', this.policy, url.hostname);
    const { origin } = url;
    let connections = this.origins.get(origin);
    if (connections === undefined) {
      requireAllowed(url, this.policy);
      connections = new OriginConnections(url, this.policy);
      if (this.origins.size >= maxOrigins) this.forgetOldest();
    } else {
      this.origins.delete(origin);
    }
    this.origins.set(origin, connections);
    return connections;
  }

  /** Makes room: closes the connections of the idle origin that was used longest ago. */
  private forgetOldest(): void {
    for (const [origin, connections] of this.origins) {
      if (!connections.idle) continue;
      this.origins.delete(origin);
      void connections.close();
      return;
    }
  }
}
