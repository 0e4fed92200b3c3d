import { ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import { RialtoError } from '../../kernel/errors.js';
import type { HttpWatch } from '../telemetry/http-watch.js';
import { requestIdOf, targetOf } from './front-door.js';
import type { DoorRequest, Target } from './http.types.js';
import { sendProblem } from './problem.js';

/** A door that is a WebSocket. */
export interface SocketRoute {
  /** For metrics and the log. */
  readonly template: string;
  readonly match: (path: string) => boolean;
  /** Who is calling, and who takes the socket when it is open. Throws RialtoError: then it is not opened, and HTTP says why. */
  accept(request: DoorRequest, target: Target): Promise<(socket: WebSocket) => void>;
}

const headersOfUpgrades = new Set(['upgrade', 'http2-settings']);

/**
 * The WebSockets of the server (RFC 6455). Whatever else asks for an upgrade is served as if it had not, as RFC 9110 section 7.8 allows:
 * clients that would rather speak HTTP/2 send such requests to any door.
 */
export class SocketDoor {
  private readonly routes: SocketRoute[] = [];
  private readonly handshakes: WebSocketServer;

  /** @param maxBytes of one message; a longer one ends its socket with 1009. */
  constructor(
    private readonly watch: HttpWatch,
    maxBytes: number,
    private readonly onError: (error: unknown, request: DoorRequest) => void,
  ) {
    this.handshakes = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: maxBytes,
    });
  }

  add(route: SocketRoute): void {
    this.routes.push(route);
  }

  /** @param open says whether this process serves doors at all. */
  guard(server: Server, open: (path: string) => boolean): void {
    server.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
      const request = incoming as DoorRequest;
      request.requestId = requestIdOf(request.headers['x-request-id']);
      const target = targetOf(request.url ?? '/');
      const route = open(target.path) ? this.routes.find(({ match }) => match(target.path)) : undefined;
      if (!route || !asksForWebSocket(request)) return serveWithoutUpgrade(server, request, socket, head);
      void this.serve(route, request, target, socket, head);
    });
  }

  private async serve(
    route: SocketRoute,
    request: DoorRequest,
    target: Target,
    socket: Socket,
    head: Buffer,
  ): Promise<void> {
    const gone = (): unknown => socket.destroy();
    socket.on('error', gone);
    try {
      const take = await route.accept(request, target);
      socket.off('error', gone);
      this.handshakes.handleUpgrade(request, socket, head, take);
    } catch (thrown) {
      const error = RialtoError.from(thrown);
      if (error.code === 'internal') this.onError(thrown, request);
      this.refuse(route, request, socket, error);
    }
  }

  private refuse({ template }: SocketRoute, request: DoorRequest, socket: Socket, error: RialtoError): void {
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    response.shouldKeepAlive = false;
    this.watch.observe(request, response, () => template);
    response.setHeader('X-Request-Id', request.requestId);
    response.once('finish', () => socket.end());
    sendProblem(request, response, error.code, error);
  }
}

function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

/** Node has let go of the connection: it is given back, with the request as its first bytes. */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const [name, value] = [request.rawHeaders[index]!, request.rawHeaders[index + 1]!];
    if (headersOfUpgrades.has(name.toLowerCase())) continue;
    const kept = name.toLowerCase() === 'connection' ? withoutUpgrade(value) : value;
    if (kept !== '') lines.push(`${name}: ${kept}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}

function withoutUpgrade(connection: string): string {
  const options = connection.split(',').map((option) => option.trim());
  return options.filter((option) => !headersOfUpgrades.has(option.toLowerCase())).join(', ');
}
