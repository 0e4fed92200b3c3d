import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What happens to the bytes between a client and a server. */
export type Fault =
  | 'pass'
  /** Nobody listens, and open connections are reset. */
  | 'refuse'
  /** Connections are taken, and nothing gets through in either direction; what was on its way waits. */
  | 'blackhole'
  /** The answers come so many milliseconds later. */
  | { readonly delayMs: number }
  /** So many bytes of the answers per second. */
  | { readonly bytesPerSecond: number }
  /** Reset after so many more bytes of the answers. */
  | { readonly resetAfter: number }
  /** The server's side ends after what it said so far; the client's stays open. */
  | 'close-half';

/** Breaks the connections whose client says something. */
export interface Cut {
  readonly text: RegExp;
  /** `request`: the server never gets it. `answer`: the server gets it and answers, and nobody hears that. */
  readonly loses: 'request' | 'answer';
  /** How many times; once unless said otherwise. */
  readonly times?: number;
}

/** A TCP proxy before a server of a test that does to its connections what networks do. */
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

  /** @param targetPort of a server of this machine. */
  static async start(targetPort: number): Promise<FaultProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const proxy = new FaultProxy(server, port, { host: '127.0.0.1', port: targetPort });
    server.on('connection', (client) => proxy.take(client));
    return proxy;
  }

  /** New connections go to another port; those there are stay. */
  leadTo(port: number): void {
    this.target = { ...this.target, port };
  }

  /** Of connections there are and will be. */
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
    for (const link of this.links) link.suffer(fault);
  }

  /** The connections there are carry nothing any more and never end; new ones are not touched: a failover without a word. */
  freeze(): void {
    for (const link of this.links) link.freeze();
  }

  /** Of whatever connection says the text from now on; instead of an earlier cut. */
  cut(wanted?: Cut): void {
    this.wanted = wanted;
    this.done = 0;
  }

  /** How many times the present cut was made. */
  get cuts(): number {
    return this.done;
  }

  /** Connections that are open. */
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
    const link = new Link(client, connect(this.target), (said) => this.lossOf(said));
    link.suffer(this.fault);
    this.links.add(link);
    void link.over.then(() => this.links.delete(link));
  }

  private lossOf(said: string): Cut['loses'] | undefined {
    const { wanted } = this;
    if (!wanted || this.done >= (wanted.times ?? 1) || !wanted.text.test(said)) return undefined;
    this.done++;
    return wanted.loses;
  }
}

/** One connection through the proxy: bytes wait in their queue until the fault lets them go on. */
class Link {
  readonly over: Promise<void>;
  private fault: Fault = 'pass';
  private isFrozen = false;
  private isUnheard = false;
  private passed = 0;
  private readonly held: (() => void)[] = [];
  private last = Promise.resolve();

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly lossOf: (said: string) => Cut['loses'] | undefined,
  ) {
    this.over = new Promise((resolve) => {
      for (const socket of [client, server]) socket.on('error', () => this.reset());
      client.on('close', () => (server.destroy(), resolve()));
    });
    client.on('data', (bytes: Buffer) => this.onward(() => this.ask(bytes)));
    client.on('end', () => this.onward(() => server.end()));
    server.on('data', (bytes: Buffer) => this.onward(() => this.answer(bytes)));
    server.on('end', () => this.onward(() => client.end()));
    server.on('close', () => this.onward(() => client.end()));
  }

  suffer(fault: Fault): void {
    this.fault = fault;
    this.passed = 0;
    if (fault === 'close-half') this.client.end();
    if (!this.isStuck) for (const go of this.held.splice(0)) go();
  }

  freeze(): void {
    this.isFrozen = true;
  }

  reset(): void {
    // Node never closes one that is reset in the middle of its end, and the process would not end for it.
    if (this.client.writableEnded) this.client.destroy();
    else this.client.resetAndDestroy();
    this.server.destroy();
  }

  private get isStuck(): boolean {
    return this.isFrozen || this.fault === 'blackhole';
  }

  private onward(go: () => void): void {
    if (this.isStuck) this.held.push(go);
    else go();
  }

  private ask(bytes: Buffer): void {
    const loss = this.lossOf(bytes.toString('latin1'));
    if (loss === 'request') return this.reset();
    this.isUnheard ||= loss === 'answer';
    this.server.write(bytes);
  }

  private answer(bytes: Buffer): void {
    const { fault } = this;
    if (this.isUnheard) return this.reset();
    if (typeof fault === 'string') return void (fault === 'pass' && this.send(bytes));
    if ('resetAfter' in fault) {
      const rest = fault.resetAfter - this.passed;
      this.passed += bytes.length;
      this.send(bytes.subarray(0, Math.max(rest, 0)));
      // A reset that comes with the last bytes would look like an end.
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
