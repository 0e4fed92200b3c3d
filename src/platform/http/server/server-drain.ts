import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { endWith, type ResponseOrder } from './response-order.js';

/**
 * Ends the connections of a server that is being closed, each behind its last response, which says `Connection: close` (RFC 9112 section
 * 9.6). `closeIdleConnections` of Node also ends connections whose last bytes their client has not read yet.
 */
export class ServerDrain {
  private readonly sockets = new Set<Socket>();
  /** Connections that HTTP does not read any more. */
  private readonly left = new WeakSet<Socket>();
  private readonly marked = new WeakSet<ServerResponse>();
  private isClosing = false;

  constructor(
    server: Server,
    private readonly order: ResponseOrder,
  ) {
    server.on('connection', (socket: Socket) => {
      this.left.delete(socket);
      if (this.sockets.has(socket)) return; // given back to HTTP after an upgrade that was not made
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    server.on('upgrade', ({ socket }) => void this.left.add(socket));
    server.prependListener('request', ({ socket }, response) => {
      if (this.isClosing) this.follow(socket, response);
    });
  }

  /** Ends what is idle at once, and every other connection behind its last response. */
  begin(): void {
    this.isClosing = true;
    for (const socket of this.sockets) {
      const last = this.order.lastOf(socket);
      if (this.left.has(socket)) continue;
      if (last && !last.writableFinished) this.mark(socket, last);
      else if (last || socket.bytesRead === 0) endWith(socket, '');
    }
  }

  /** Ends everything at once. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** A request behind a response that has said `Connection: close` is not served; its client asks elsewhere. */
  private follow(socket: Socket, response: ServerResponse): void {
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
      if (this.order.lastOf(socket) === response && !this.left.has(socket)) endWith(socket, '');
    });
  }
}
