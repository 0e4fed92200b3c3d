import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { endWith, type ResponseOrder } from './response-order.js';

/**
 * Ends the connections of a server that is being closed, each after its last response, which contains `Connection:
 * close` (RFC 9112 section 9.6). Node's `closeIdleConnections` also ends connections when the client has not yet read
 * the last bytes.
 */
export class ServerDrain {
  private readonly sockets = new Set<Socket>();
  /** Connections from which HTTP no longer reads. */
  private readonly detached = new WeakSet<Socket>();
  private readonly marked = new WeakSet<ServerResponse>();
  private isClosing = false;

  constructor(
    server: Server,
    private readonly order: ResponseOrder,
  ) {
    server.on('connection', (socket: Socket) => {
      this.detached.delete(socket);
      if (this.sockets.has(socket)) return; // returned to HTTP after an upgrade that did not happen
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    server.on('upgrade', ({ socket }) => void this.detached.add(socket));
    server.prependListener('request', ({ socket }, response) => {
      if (this.isClosing) this.trackResponse(socket, response);
    });
  }

  /** Ends idle connections at once, and every other connection after its last response. */
  begin(): void {
    this.isClosing = true;
    for (const socket of this.sockets) {
      const last = this.order.lastOf(socket);
      if (this.detached.has(socket)) continue;
      if (last && !last.writableFinished) this.mark(socket, last);
      else if (last || socket.bytesRead === 0) endWith(socket, '');
    }
  }

  /** Ends every connection at once. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** A request after a response with `Connection: close` is not served; its client sends it on another connection. */
  private trackResponse(socket: Socket, response: ServerResponse): void {
    const before = this.order.lastOf(socket);
    const isClosed = before !== undefined && this.marked.has(before) && before.headersSent;
    if (isClosed || !socket.writable) return void response.destroy();
    if (before && this.marked.delete(before)) before.removeHeader('Connection');
    this.mark(socket, response);
  }

  private mark(socket: Socket, response: ServerResponse): void {
    if (!response.headersSent && !response.hasHeader('Connection')) {
      response.setHeader('Connection', 'close');
      this.marked.add(response);
    }
    response.once('close', () => {
      if (this.order.lastOf(socket) === response && !this.detached.has(socket)) endWith(socket, '');
    });
  }
}
