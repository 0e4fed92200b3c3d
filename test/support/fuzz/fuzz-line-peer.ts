import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { disturb, poisons, scramble } from './fuzz-json.js';
import type { Random } from './random.js';

/** The line of one client. */
interface Line {
  say(text: string | Buffer): void;
  /** Bytes below the protocol of the line. */
  write(bytes: Buffer): void;
  /** Ends it properly. */
  end(): void;
  cut(): void;
}

const nothing = { url: '', close: (): Promise<void> => Promise.resolve() };

/** An MCP server on one line, a WebSocket or the stream of the SSE transport, that answers with what it should, spoilt by chance. */
export class FuzzLinePeer {
  private running = nothing;
  /** How often in a hundred an answer is as it should be. */
  goodShare = 10;

  private constructor(
    private readonly random: Random,
    private readonly good: (asked: any) => object | undefined,
  ) {}

  /** @param good what a well-behaved server would answer; undefined for what is not answered. */
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
      const line: Line = {
        say: (text) => socket.send(text),
        write: (bytes) => below.write(bytes),
        end: () => socket.close(this.random.pick([1000, 1001, 1011, 4000])),
        cut: () => socket.terminate(),
      };
      socket.on('message', (data: Buffer) => this.answer(line, JSON.parse(data.toString())));
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
        const line: Line = {
          say: (text) => stream.write(`event: message\ndata: ${String(text)}\n\n`),
          write: (bytes) => stream.write(bytes),
          end: () => stream.end(),
          cut: () => stream.destroy(),
        };
        this.answer(line, JSON.parse(Buffer.concat(pieces).toString()));
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

  private answer(line: Line, asked: any): void {
    const { random } = this;
    const good = this.good(asked);
    if (!good) return;
    const text = JSON.stringify(good);
    if (random.chance(this.goodShare / 100)) return line.say(text);
    random.pick<() => void>([
      () => line.say(JSON.stringify(disturb(good, random))),
      () => line.say(JSON.stringify(disturb(disturb(good, random), random))),
      () => line.say(JSON.stringify([good, disturb(good, random)])),
      () => line.say(JSON.stringify({ ...good, id: random.pick([null, 'x', -1, 1.5, 1e21, {}]) })),
      () => [disturb(good, random), good, good].forEach((each) => line.say(JSON.stringify(each))),
      () => line.say(scramble(Buffer.from(text), random).toString()),
      () => line.say(scramble(Buffer.from(text), random)),
      () => line.say(random.pick(poisons)().toString()),
      () => line.write(scramble(Buffer.from(text), random)),
      () => line.write(Buffer.from(Array.from({ length: 1 + random.whole(20) }, () => random.whole(256)))),
      () => line.end(),
      () => line.cut(),
      () => undefined,
    ])();
  }
}
