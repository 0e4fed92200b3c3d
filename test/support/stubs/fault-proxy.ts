import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A fault of the connections between a client and a server. */
export type Fault =
  | 'pass'
  /** New connections are refused and open ones are reset. */
  | 'refuse'
  /** Connections are accepted, but no bytes pass in either direction. They wait until the fault ends. */
  | 'blackhole'
  /** The answers arrive this many milliseconds later. */
  | { readonly delayMs: number }
  /** The answers pass at this many bytes per second. */
  | { readonly bytesPerSecond: number }
  /** The connection is reset after this many more bytes of the answers. */
  | { readonly resetAfter: number }
  /** The server side ends after the bytes that it has sent; the client side stays open. */
  | 'close-half';

/** Breaks a connection when the bytes of the client match a text. */
export interface Cut {
  readonly text: RegExp;
  /**
   * `request`: the server does not get the request. `answer`: the server gets it and answers, but the client does not
   * get the answer.
   */
  readonly loses: 'request' | 'answer';
  /** Number of cuts; the default is 1. */
  readonly times?: number;
}

/** A TCP proxy in front of a test server that simulates network faults. */
export class FaultProxy {
  private fault: Fault = 'pass';
  private readonly links = new Set<Link>();
  private wanted?: Cut;
  private done = 0;

  private constructor(
    private server: Server,
    readonly port: number,
    private target: { host: string; port: number },
  ) {}

  /**
   * Starts a proxy.
   * @param targetPort port of a server on this machine.
   */
  static async start(targetPort: number): Promise<FaultProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const proxy = new FaultProxy(server, port, { host: '127.0.0.1', port: targetPort });
    server.on('connection', (client) => proxy.take(client));
    return proxy;
  }

  /** Directs new connections to another port. Existing connections stay. */
  leadTo(port: number): void {
    this.target = { ...this.target, port };
  }

  /** Sets the fault of existing and future connections. */
  async set(fault: Fault): Promise<void> {
    const wasClosed = this.fault === 'refuse';
    this.fault = fault;
    if (fault === 'refuse' && !wasClosed) {
      const closed = once(this.server, 'close');
      this.server.close();
      for (const link of this.links) link.reset();
      await closed;
    }
    if (fault !== 'refuse' && wasClosed) await this.listenAgain();
    for (const link of this.links) link.setFault(fault);
  }

  /**
   * Freezes the existing connections: they pass no bytes and never end. New connections work. Simulates a failover
   * without notice.
   */
  freeze(): void {
    for (const link of this.links) link.freeze();
  }

  /** Cuts a future connection that sends the text, and replaces an earlier cut. */
  cut(wanted?: Cut): void {
    this.wanted = wanted;
    this.done = 0;
  }

  /** Number of times that the current cut was made. */
  get cuts(): number {
    return this.done;
  }

  /** Number of open connections. */
  get open(): number {
    return this.links.size;
  }

  async close(): Promise<void> {
    await this.set('refuse');
  }

  private async listenAgain(): Promise<void> {
    this.server = createServer((client) => this.take(client)).listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  private take(client: Socket): void {
    const link = new Link(client, connect(this.target), (sent) => this.lossOf(sent));
    link.setFault(this.fault);
    this.links.add(link);
    void link.over.then(() => this.links.delete(link));
  }

  private lossOf(sent: string): Cut['loses'] | undefined {
    const { wanted } = this;
    if (!wanted || this.done >= (wanted.times ?? 1) || !wanted.text.test(sent)) return undefined;
    this.done++;
    return wanted.loses;
  }
}

/** One connection through the proxy. Bytes wait in a queue until the fault lets them pass. */
class Link {
  readonly over: Promise<void>;
  private fault: Fault = 'pass';
  private isFrozen = false;
  private isAnswerLost = false;
  private passed = 0;
  private readonly held: (() => void)[] = [];
  private last = Promise.resolve();

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly lossOf: (sent: string) => Cut['loses'] | undefined,
  ) {
    this.over = new Promise((resolve) => {
      for (const socket of [client, server]) socket.on('error', () => this.reset());
      client.on('close', () => (server.destroy(), resolve()));
    });
    client.on('data', (bytes: Buffer) => this.pass(() => this.ask(bytes)));
    client.on('end', () => this.pass(() => server.end()));
    server.on('data', (bytes: Buffer) => this.pass(() => this.answer(bytes)));
    server.on('end', () => this.pass(() => client.end()));
    server.on('close', () => this.pass(() => client.end()));
  }

  setFault(fault: Fault): void {
    this.fault = fault;
    this.passed = 0;
    if (fault === 'close-half') this.client.end();
    if (!this.isStuck) for (const go of this.held.splice(0)) go();
  }

  freeze(): void {
    this.isFrozen = true;
  }

  reset(): void {
    // Node never closes a socket that is reset while it ends, and the process would then not exit.
    if (this.client.writableEnded) this.client.destroy();
    else this.client.resetAndDestroy();
    this.server.destroy();
  }

  private get isStuck(): boolean {
    return this.isFrozen || this.fault === 'blackhole';
  }

  private pass(go: () => void): void {
    if (this.isStuck) this.held.push(go);
    else go();
  }

  private ask(bytes: Buffer): void {
    const loss = this.lossOf(bytes.toString('latin1'));
    if (loss === 'request') return this.reset();
    this.isAnswerLost ||= loss === 'answer';
    this.server.write(bytes);
  }

  private answer(bytes: Buffer): void {
    const { fault } = this;
    if (this.isAnswerLost) return this.reset();
    if (typeof fault === 'string') return void (fault === 'pass' && this.send(bytes));
    if ('resetAfter' in fault) {
      const rest = fault.resetAfter - this.passed;
      this.passed += bytes.length;
      this.send(bytes.subarray(0, Math.max(rest, 0)));
      // A reset together with the last bytes would look like a regular end.
      if (bytes.length >= rest) setTimeout(() => this.reset(), 20);
      return;
    }
    const ms = 'delayMs' in fault ? fault.delayMs : (bytes.length / fault.bytesPerSecond) * 1_000;
    const after = 'delayMs' in fault ? Promise.resolve() : this.last;
    this.last = after.then(() => new Promise((resolve) => setTimeout(resolve, ms))).then(() => this.send(bytes));
  }

  private send(bytes: Buffer): void {
    if (!this.client.destroyed && !this.client.writableEnded) this.client.write(bytes);
  }
}
