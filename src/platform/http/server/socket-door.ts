import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { WebSocketServer, type WebSocket } from 'ws';
import { RialtoError } from '../../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../config/settings.js';
import { ByteCollector } from '../../byte-collector.js';
import { HttpWatch } from '../../telemetry/http-watch.js';
import { LOGGER, type Logger } from '../../telemetry/logger.js';
import { requestIdOf, targetOf } from './front-door.js';
import type { DoorRequest, Target } from '../http.types.js';
import { problemAnswer } from '../problem.js';
import { endWith, type ResponseOrder } from './response-order.js';

/** A route that is served as a WebSocket. */
export interface SocketRoute {
  /** The path in metrics and the log. */
  readonly template: string;
  readonly match: (path: string) => boolean;
  /**
   * Authenticates the caller and returns the function that takes the open socket. Throws RialtoError, which is
   * answered over HTTP.
   */
  accept(request: DoorRequest, target: Target): Promise<(socket: WebSocket) => void>;
}

const headersOfUpgrades = new Set(['upgrade', 'http2-settings']);

/** An upgrade request, which HTTP no longer reads, with the bytes after it. */
interface Upgrade {
  readonly request: DoorRequest;
  readonly stream: Duplex;
  readonly head: Buffer;
}

/**
 * The WebSockets of the server (RFC 6455). Any other request with an `Upgrade` header is served as if it had none,
 * which RFC 9110 section 7.8 allows: clients that prefer HTTP/2 send such requests to any door.
 */
@Injectable()
export class SocketDoor {
  private readonly routes: SocketRoute[] = [];
  private readonly handshakes: WebSocketServer;
  private isOpen: (path: string) => boolean = () => false;

  /**
   * Limit of one message in bytes; a longer one closes its socket with 1009. Requests with longer bodies are left to
   * HTTP.
   */
  private readonly maxBytes: number;

  constructor(
    private readonly watch: HttpWatch,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.maxBytes = settings.RIALTO_MAX_BODY_BYTES;
    this.handshakes = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      // One message or ping in a turn of the event loop: thousands fit into one read.
      allowSynchronousEvents: false,
      maxPayload: this.maxBytes,
    });
    // Emitted inside `handleUpgrade`, so `serveSocket` catches it.
    this.handshakes.on('wsClientError', ({ message }) => {
      throw new RialtoError('invalid_params', { message: `the WebSocket handshake is not valid: ${message}` });
    });
  }

  add(route: SocketRoute): void {
    this.routes.push(route);
  }

  /**
   * Decides whether a request with an `Upgrade` header is emitted as `upgrade`, for Node's `shouldUpgradeCallback`.
   * Other requests are ordinary at once, but Node loses the bytes after them, so their connection is closed after the
   * response.
   */
  takes({ headers }: IncomingMessage): boolean {
    return (
      headers['transfer-encoding'] === undefined &&
      headers.expect === undefined &&
      Number(headers['content-length'] ?? 0) <= this.maxBytes
    );
  }

  /** @param open tells whether this process serves the door at a path. */
  guard(server: Server, order: ResponseOrder, open: (path: string) => boolean): void {
    this.isOpen = open;
    server.prependListener('request', (request, response) => {
      if (asksForUpgrade(request)) response.setHeader('Connection', 'close');
    });
    server.on('upgrade', (incoming: IncomingMessage, stream: Duplex, head: Buffer) => {
      void this.upgrade(server, order, { request: incoming as DoorRequest, stream, head });
    });
  }

  private async upgrade(server: Server, order: ResponseOrder, upgrade: Upgrade): Promise<void> {
    const { request, stream } = upgrade;
    const gone = (): unknown => stream.destroy();
    stream.on('error', gone);
    try {
      if (!(await order.answered(request.socket))) return void stream.destroy();
      const target = targetOf(request.url ?? '/');
      const route = this.isOpen(target.path) ? this.routes.find(({ match }) => match(target.path)) : undefined;
      if (route && asksForWebSocket(request)) await this.serveSocket(route, target, upgrade);
      else await serveWithoutUpgrade(server, upgrade, this.maxBytes);
    } catch {
      stream.destroy(); // its client disconnected while it sent the body, or sent too much
    } finally {
      stream.off('error', gone);
    }
  }

  private async serveSocket(route: SocketRoute, target: Target, { request, stream, head }: Upgrade): Promise<void> {
    request.requestId = requestIdOf(request.headers['x-request-id']);
    try {
      const take = await route.accept(request, target);
      this.handshakes.handleUpgrade(request, stream, head, take);
    } catch (thrown) {
      const error = RialtoError.from(thrown);
      if (error.code === 'internal')
        this.log.error({ err: thrown, requestId: request.requestId }, 'a WebSocket could not be opened');
      this.refuseUpgrade(route, request, stream, error);
    }
  }

  /** Answers with a problem document and ends the connection, which HTTP no longer reads. */
  private refuseUpgrade({ template }: SocketRoute, request: DoorRequest, stream: Duplex, error: RialtoError): void {
    const { status: statusCode, headers, body } = problemAnswer(request, error.code, error);
    this.watch.observe(request, { statusCode, once: (event, listen) => stream.once(event, listen) }, () => template);
    const all = {
      ...headers,
      'X-Request-Id': request.requestId,
      'Content-Length': String(Buffer.byteLength(body)),
      // RFC 6455 section 4.4: a client with another version learns which one to use.
      'Sec-WebSocket-Version': '13',
      Date: new Date().toUTCString(),
      Connection: 'close',
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    endWith(stream, `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}\r\n${lines.join('')}\r\n${body}`);
  }
}

/** True for a handshake of RFC 6455 section 4.1; it has no body. */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  const hasBody = Number(headers['content-length'] ?? 0) !== 0;
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody;
}

function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade !== undefined && /\bupgrade\b/i.test(headers.connection ?? '');
}

/**
 * Returns a connection to HTTP with the request as its first bytes, without the upgrade headers. Before Node 26 the
 * body is in `head`; since then it is in the request, and `stream` is not the socket when the body arrives after the
 * headers. Throws `too_large` for a body of more than `maxBytes`, or of very many tiny chunks.
 */
async function serveWithoutUpgrade(
  server: Server,
  { request, stream, head }: Upgrade,
  maxBytes: number,
): Promise<void> {
  const body = new ByteCollector();
  for await (const chunk of request) {
    body.add(chunk as Buffer);
    if (body.size > maxBytes || body.isShredded) throw new RialtoError('too_large');
  }
  const isNested = stream !== request.socket && !(request.socket instanceof Socket);
  const first = `${request.method} ${request.url} HTTP/${request.httpVersion}`;
  const lines = [first, ...headersWithoutUpgrade(request.rawHeaders), ...(isNested ? ['Connection: close'] : [])];
  stream.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body.bytes, head]));
  // Removes the idle timeout of the previous response, which must not end a slow answer.
  request.socket.setTimeout(0);
  if (stream !== request.socket) Object.assign(stream, { remoteAddress: request.socket.remoteAddress });
  server.emit('connection', stream);
}

function headersWithoutUpgrade(raw: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const [name, value] = [raw[index]!, raw[index + 1]!];
    if (headersOfUpgrades.has(name.toLowerCase())) continue;
    const cleaned = name.toLowerCase() === 'connection' ? withoutUpgrade(value) : value;
    if (cleaned !== '') lines.push(`${name}: ${cleaned}`);
  }
  return lines;
}

function withoutUpgrade(connection: string): string {
  const options = connection.split(',').map((option) => option.trim());
  return options.filter((option) => !headersOfUpgrades.has(option.toLowerCase())).join(', ');
}
