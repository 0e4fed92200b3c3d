import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { disturb, hostileTexts, poisons, scramble } from './fuzz-json.js';
import type { Random } from './random.js';

/** One request as the peer parsed it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: any;
}

/** The correct answer to a request. */
export interface GoodAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** One value; `events` has the events of a stream instead. */
  readonly value?: unknown;
  readonly events?: readonly unknown[];
}

const statuses = [100, 101, 200, 201, 202, 204, 206, 301, 304, 400, 401, 404, 409, 422, 429, 500, 503, 599, 999];
const types = [
  'application/json',
  'text/event-stream',
  'text/html',
  'application/problem+json',
  'application/json; charset=utf-16',
  '',
];
const framings = [
  'data: ',
  'data:',
  'event: message\ndata: ',
  ': ping\n\ndata: ',
  'id: 1\nretry: 0\ndata: ',
  'datum: ',
];

/** An HTTP server on plain TCP that answers every request with the expected answer, corrupted at random. */
export class FuzzPeer {
  private readonly sockets = new Set<Socket>();
  /** Percentage of correct answers. */
  goodShare = 10;

  private constructor(
    private readonly server: Server,
    private readonly random: Random,
    private readonly good: (asked: Asked) => GoodAnswer | undefined,
  ) {}

  /**
   * Starts a peer.
   * @param good returns the correct answer; undefined for a request with an uncorrupted answer: 202 without a body.
   */
  static async start(random: Random, good: (asked: Asked) => GoodAnswer | undefined): Promise<FuzzPeer> {
    const server = createServer();
    const peer = new FuzzPeer(server, random, good);
    server.on('connection', (socket) => peer.take(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return peer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private take(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket));
    let read = Buffer.alloc(0);
    socket.on('data', (piece) => {
      read = Buffer.concat([read, piece]);
      const end = read.indexOf('\r\n\r\n');
      if (end === -1) return;
      const [first = '', ...lines] = read.toString('latin1', 0, end).split('\r\n');
      const headers = Object.fromEntries(
        lines.map((line) => line.split(/: ?(.*)/s, 2).map((word) => word.toLowerCase())),
      );
      const length = Number(headers['content-length'] ?? 0);
      if (read.length < end + 4 + length) return;
      const text = read.toString('utf8', end + 4, end + 4 + length);
      read = read.subarray(end + 4 + length);
      const [method = '', path = ''] = first.split(' ');
      this.answer(socket, { method, path, headers, body: text === '' ? undefined : JSON.parse(text) });
    });
  }

  private answer(socket: Socket, asked: Asked): void {
    const { random } = this;
    const good = this.good(asked);
    if (!good) return void socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n');
    if (random.chance(this.goodShare / 100)) return void socket.write(wire(good));
    const bytes = this.spoilt(good);
    const isCut = random.chance(0.1);
    socket.write(isCut ? bytes.subarray(0, random.whole(bytes.length)) : bytes);
    if (isCut || random.chance(0.3)) random.pick([() => socket.end(), () => socket.resetAndDestroy()])();
  }

  private spoilt(good: GoodAnswer): Buffer {
    const { random } = this;
    const change = (value: unknown): unknown => {
      let changed = value;
      for (let times = 1 + random.whole(3); times > 0; times--) changed = disturb(changed, random);
      return changed;
    };
    return random.pick<() => Buffer>([
      () => wire({ ...good, ...(good.events ? { events: good.events.map(change) } : { value: change(good.value) }) }),
      () => wire({ ...good, ...(good.events ? { events: good.events.map(change) } : { value: change(good.value) }) }),
      () => wire({ ...good, events: random.shuffled([...(good.events ?? [good.value]), change(good.value)]) }),
      () => scramble(wire(good), random),
      () => wire({ ...good, status: random.pick(statuses) }),
      () => wire({ ...good, headers: { 'content-type': random.pick(types) } }),
      () =>
        wire({ ...good, headers: { [`x-${random.whole(9)}`]: random.pick(hostileTexts).replace(/[\r\n\0]/g, ' ') } }),
      () => wire(good, random.pick(framings)),
      () => wire(good, 'data: ', random.pick([-3, -1, 1, 400])),
      () => around(random.pick(poisons)(), 'application/json'),
      () => around(random.pick(poisons)(), 'text/event-stream'),
      () =>
        Buffer.from(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n' +
            'zz\r\n{}\r\n0\r\n\r\n',
        ),
      () => Buffer.from('not HTTP at all\r\n\r\n'),
    ])();
  }
}

function wire({ status = 200, headers, value, events }: GoodAnswer, framing = 'data: ', lie = 0): Buffer {
  const body = events
    ? events.map((event) => `${framing}${JSON.stringify(event)}\n\n`).join('')
    : JSON.stringify(value ?? null);
  const type = events ? 'text/event-stream' : 'application/json';
  return around(Buffer.from(body), type, { status, headers, lie });
}

interface Framing {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Number of bytes by which the declared length is wrong. */
  readonly lie?: number;
}

function around(body: Buffer, type: string, { status = 200, headers = {}, lie = 0 }: Framing = {}): Buffer {
  const all = { 'content-type': type, 'content-length': String(Math.max(0, body.length + lie)), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} Fuzz\r\n${lines.join('')}\r\n`), body]);
}
