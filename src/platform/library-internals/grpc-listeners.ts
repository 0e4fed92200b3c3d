import type { Server as NetServer } from 'node:net';
import type { Server } from '@grpc/grpc-js';

/**
 * The member of a gRPC server that has its HTTP/2 servers.
 *
 * Missing public API: the largest number of connections, which every other server of Node has.
 * Canary test: `grpc-listeners.spec.ts`.
 */
interface Listening {
  readonly http2Servers: ReadonlyMap<NetServer, unknown>;
}

/** Limits the number of connections of a gRPC server that listens. */
export function limitConnections(server: Server, most: number): void {
  const { http2Servers } = server as unknown as Listening;
  for (const listener of http2Servers.keys()) listener.maxConnections = most;
}
