import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import { RialtoError } from '../../../src/kernel/errors.js';
import { parseAllowList } from '../../../src/platform/http/outbound/address.js';
import { SafeFetch, type OutboundPolicy, type SafeRequest } from '../../../src/platform/http/outbound/safe-fetch.js';

const closers: (() => Promise<unknown>)[] = [];

/** Closes every server and client of a test; for `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

/** A server on loopback with all connections that it has accepted. */
export interface Running<S> {
  server: S;
  port: number;
  url: string;
  connections: Socket[];
}

/** Starts a server; `closeAll` closes it. */
export async function listen<S extends TcpServer>(server: S, host = '127.0.0.1', port = 0): Promise<Running<S>> {
  const connections: Socket[] = [];
  server.on('connection', (socket: Socket) => connections.push(socket.on('error', () => undefined)));
  server.listen(port, host);
  await once(server, 'listening');
  closers.push(() => {
    for (const socket of connections) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const bound = (server.address() as AddressInfo).port;
  return { server, port: bound, url: `http://${host}:${bound}`, connections };
}

/** Starts an HTTP server on a free port. */
export const http = (handler: RequestListener, host?: string, port?: number): Promise<Running<Server>> =>
  listen(createServer(handler), host, port);
/** Starts a TCP server. `answer` gets the socket when the first data of a request has arrived. */
export const raw = (answer: (socket: Socket) => void): Promise<Running<TcpServer>> =>
  listen(createTcpServer((socket) => socket.once('data', () => answer(socket))));

/** Creates a client that may connect to loopback unless `list` forbids it; `closeAll` closes it. */
export function client(policy: Partial<OutboundPolicy> & { list?: string } = {}): SafeFetch {
  const { list = '127.0.0.0/8,::1', ...rest } = policy;
  const fetch = new SafeFetch({ allow: parseAllowList(list), httpsOnly: false, ...rest });
  closers.push(() => fetch.close());
  return fetch;
}

/** Builds a GET request with generous limits. */
export const get = (url: string, more: Partial<SafeRequest> = {}): SafeRequest => ({
  method: 'GET',
  url,
  deadlineMs: 10_000,
  maxBytes: 1_000_000,
  ...more,
});

/** Returns the `RialtoError` that the work fails with. Rethrows any other error. */
export async function failure(work: Promise<unknown>): Promise<RialtoError> {
  const error: unknown = await work.then(
    () => new Error('the work did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RialtoError)) throw error;
  return error;
}

/** Reads all bytes of a body. */
export async function read(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Both ways to read an answer: as a whole, and as a stream. */
export const readers: [string, (fetch: SafeFetch, request: SafeRequest) => Promise<Buffer>][] = [
  ['request', async (fetch, request) => (await fetch.request(request)).body],
  ['stream', async (fetch, request) => read((await fetch.stream(request)).body)],
];

/** Resolves when the socket is closed, with or without an error. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
