import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** How long a client may take to read the last response of a connection from which HTTP no longer reads. */
const lingerMs = 2_000;

/** Statuses of malformed requests other than 400, by Node's error code. */
const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** The newest response of a connection and the one before it. */
interface Lasts {
  last: ServerResponse;
  before?: ServerResponse;
}

/**
 * Keeps the responses of each connection in the order of its requests (RFC 9112 section 9.3.2) where Node does not.
 */
export class ResponseOrder {
  private readonly lasts = new WeakMap<Duplex, Lasts>();
  private readonly broken = new WeakSet<Duplex>();

  constructor(server: Server) {
    server.prependListener('request', (request: IncomingMessage, response) => {
      const lasts = this.lasts.get(request.socket);
      if (lasts) [lasts.last, lasts.before] = [response, lasts.last];
      else this.lasts.set(request.socket, { last: response });
    });
    server.on(
      'clientError',
      (error: NodeJS.ErrnoException, socket) => void this.refuseRequest(error, socket as Socket),
    );
  }

  /** The response to the newest request of a connection. */
  lastOf(socket: Duplex): ServerResponse | undefined {
    return this.lasts.get(socket)?.last;
  }

  /**
   * Waits until the earlier requests of a connection are answered. Resolves to false when the connection can no
   * longer be written to.
   */
  async answered(socket: Socket): Promise<boolean> {
    await closed(socket, this.lastOf(socket));
    return socket.writable;
  }

  /**
   * Answers a malformed request after the earlier responses. Bytes after a request with `Connection: close` are
   * ignored.
   */
  private async refuseRequest({ code = '' }: NodeJS.ErrnoException, socket: Socket): Promise<void> {
    if (this.broken.has(socket)) return;
    const { last, before } = this.lasts.get(socket) ?? {};
    const isPending = last !== undefined && !last.writableFinished;
    if (code === 'HPE_CLOSED_CONNECTION' && isPending) return;
    this.broken.add(socket);
    const isItsBody = isPending && !last.req.complete;
    await closed(socket, isItsBody ? before : last);
    const isHalfSent = isItsBody && last.headersSent && !last.writableFinished;
    if (!socket.writable || isHalfSent) return void socket.destroy();
    const status = statuses[code] ?? 400;
    endWith(socket, `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
  }
}

/** Waits until a response, or its connection, is closed. */
async function closed(socket: Socket, response: ServerResponse | undefined): Promise<void> {
  if (!response || response.writableFinished || socket.destroyed) return;
  await new Promise((resolve) => {
    response.once('close', resolve);
    socket.once('close', resolve);
    response.once('close', () => socket.off('close', resolve));
  });
}

/**
 * Writes the last bytes of a connection, and for a while drops the bytes that its client still sends. A connection
 * that is closed with unread bytes is reset, and the client may lose the response.
 */
export function endWith(stream: Duplex, bytes: string): void {
  stream.on('error', () => stream.destroy());
  stream.end(bytes);
  stream.resume();
  const late = setTimeout(() => stream.destroy(), lingerMs).unref();
  stream.once('close', () => clearTimeout(late));
}
