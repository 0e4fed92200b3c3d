import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { disturb, poisons, scramble } from './fuzz-json.js';
import type { Random } from './random.js';

/** The connection of one client. */
interface Connection {
  send(text: string | Buffer): void;
  /** Writes bytes below the message protocol. */
  write(bytes: Buffer): void;
  /** Closes the connection in the regular way. */
  end(): void;
  cut(): void;
}

const nothing = { url: '', close: (): Promise<void> => Promise.resolve() };

/**
 * An MCP server on one connection, a WebSocket or the stream of the SSE transport. It sends the expected answers,
 * corrupted at random.
 */
export class FuzzLinePeer {
  private running = nothing;
  /** Percentage of correct answers. */
  goodShare = 10;

  private constructor(
    private readonly random: Random,
    private readonly good: (asked: any) => object | undefined,
  ) {}

  /**
   * Starts a peer.
   * @param good returns the correct answer; undefined for a message without an answer.
   */
  static async start(
    kind: 'websocket' | 'sse',
    random: Random,
    good: (asked: any) => object | undefined,
  ): Promise<FuzzLinePeer> {
    const peer = new FuzzLinePeer(random, good);
    peer.running = await (kind === 'sse' ? peer.onStreams() : peer.onSockets());
    return peer;
  }

  get url(): string {
    return this.running.url;
  }

  close(): Promise<void> {
    return this.running.close();
  }

  private async onSockets(): Promise<typeof nothing> {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'mcp' });
    await new Promise((resolve) => server.once('listening', resolve));
    server.on('connection', (socket) => {
      socket.on('error', () => undefined);
      const below = (socket as WebSocket & { _socket: Duplex })._socket;
      const connection: Connection = {
        send: (text) => socket.send(text),
        write: (bytes) => below.write(bytes),
        end: () => socket.close(this.random.pick([1000, 1001, 1011, 4000])),
        cut: () => socket.terminate(),
      };
      socket.on('message', (data: Buffer) => this.answer(connection, JSON.parse(data.toString())));
    });
    return {
      url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      close: () => {
        for (const client of server.clients) client.terminate();
        return new Promise((resolve) => server.close(() => resolve()));
      },
    };
  }

  private async onStreams(): Promise<typeof nothing> {
    const streams = new Map<string, ServerResponse>();
    const server = createServer((request, response) => {
      response.on('error', () => undefined);
      if (request.method === 'GET') {
        const id = String(streams.size);
        streams.set(id, response.writeHead(200, { 'content-type': 'text/event-stream' }));
        return void response.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
      }
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        response.writeHead(202).end();
        const stream = streams.get(new URL(request.url!, 'http://x').searchParams.get('id')!)!;
        const connection: Connection = {
          send: (text) => stream.write(`event: message\ndata: ${String(text)}\n\n`),
          write: (bytes) => stream.write(bytes),
          end: () => stream.end(),
          cut: () => stream.destroy(),
        };
        this.answer(connection, JSON.parse(Buffer.concat(pieces).toString()));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`,
      close: () => {
        server.closeAllConnections();
        return new Promise((resolve) => server.close(() => resolve()));
      },
    };
  }

  private answer(connection: Connection, asked: any): void {
    const { random } = this;
    const good = this.good(asked);
    if (!good) return;
    const text = JSON.stringify(good);
    if (random.chance(this.goodShare / 100)) return connection.send(text);
    random.pick<() => void>([
      () => connection.send(JSON.stringify(disturb(good, random))),
      () => connection.send(JSON.stringify(disturb(disturb(good, random), random))),
      () => connection.send(JSON.stringify([good, disturb(good, random)])),
      () => connection.send(JSON.stringify({ ...good, id: random.pick([null, 'x', -1, 1.5, 1e21, {}]) })),
      () => [disturb(good, random), good, good].forEach((each) => connection.send(JSON.stringify(each))),
      () => connection.send(scramble(Buffer.from(text), random).toString()),
      () => connection.send(scramble(Buffer.from(text), random)),
      () => connection.send(random.pick(poisons)().toString()),
      () => connection.write(scramble(Buffer.from(text), random)),
      () => connection.write(Buffer.from(Array.from({ length: 1 + random.whole(20) }, () => random.whole(256)))),
      () => connection.end(),
      () => connection.cut(),
      () => undefined,
    ])();
  }
}
