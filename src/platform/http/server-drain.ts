import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const lookMs = 50;

/**
 * Lets a server that is being closed end as soon as its last answer is written. Node waits for connections that were opened
 * ahead and never used, and for kept-alive ones that were busy when the close began: both are closed here, while whatever is
 * being answered goes on; after `graceMs` that ends as well. Returns how to begin; beginning returns how to stop.
 */
export function drainOf(server: Server, graceMs: number): () => () => void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const look = (): void => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    server.closeIdleConnections();
  };
  return () => {
    const looking = setInterval(() => !server.listening && look(), lookMs);
    const late = setTimeout(() => server.closeAllConnections(), graceMs);
    return () => {
      clearInterval(looking);
      clearTimeout(late);
    };
  };
}
