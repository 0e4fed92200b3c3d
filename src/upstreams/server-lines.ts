import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import type { Peer } from '../kernel/peer.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { CallOptions } from './upstream-connection.types.js';

/** Of single clients, besides the one that everybody uses. */
const mostOwn = 15;
const idleOwnMs = 60_000;

export interface LineMaker {
  /** @param peer the client of the 2025 era whose line it is; absent: everybody's, which tells of changes. */
  make(peer?: Peer): UpstreamConnection;
  /** Whether one line more may be opened just now. */
  mayMake(): boolean;
  /** Reads what the server has, on the line of all, and keeps it. */
  read(): Promise<void>;
}

/**
 * The lines of one process to one server. All calls share one. What a server of the 2025 era asks, or keeps of an answer, does not say which
 * call it is for: a client that can be asked has a line of its own, so that nobody is asked for what another caused.
 */
export class ServerLines {
  readonly main: UpstreamConnection;
  /** By the keys of their clients. */
  private readonly own = new Map<string, UpstreamConnection>();
  private speaksLegacy?: boolean;
  /** Since when the line of all is connected on which it was read what the server has. */
  private readSince?: number;

  constructor(private readonly maker: LineMaker) {
    this.main = maker.make();
  }

  get count(): number {
    return 1 + this.own.size;
  }

  /** Calls that they have at work. */
  get load(): number {
    return [...this.own.values()].reduce((sum, { load }) => sum + load, this.main.load);
  }

  /** For how long nobody used any of them, in milliseconds; 0 while somebody does. */
  get idleMs(): number {
    return Math.min(this.main.idleMs, ...[...this.own.values()].map(({ idleMs }) => idleMs));
  }

  /** Whether the server speaks the 2025 era with us. Throws as UpstreamConnection.request does. */
  async isOfOldEra(options: CallOptions): Promise<boolean> {
    await this.main.ready(options);
    return this.main.era === 'legacy';
  }

  /** Throws as UpstreamConnection.request does. */
  async request(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject> {
    const line = this.ownOf(options.peer);
    if (!line) return this.byMain(method, params, options);
    if (options.peer!.isPassing) return line.request(method, params, options);
    try {
      await line.ready(options);
      this.speaksLegacy = true;
    } catch (thrown) {
      if (this.speaksLegacy || !isRefusal(thrown)) throw thrown;
      this.speaksLegacy = false;
      this.dropOwn(options.peer!.key);
      return this.byMain(method, params, options);
    }
    return line.request(method, params, options);
  }

  /** A server that was connected anew may be another: what it has is read before it is asked to do anything. */
  private async byMain(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject> {
    const { stillMay } = options;
    if (!stillMay) return this.main.request(method, params, options);
    const opened = async (): Promise<void> => {
      if (this.readSince !== undefined && this.readSince === this.main.connectedAt) return;
      await this.main.ready(options);
      const { connectedAt } = this.main;
      if (this.readSince === connectedAt) return;
      await this.maker.read();
      this.readSince = connectedAt;
      await stillMay();
    };
    await opened();
    return this.main.request(method, params, { ...options, opened });
  }

  /** By the line of its client where it has one. Throws as UpstreamConnection.notify does. */
  notify(method: string, params: JsonObject, options: CallOptions): Promise<void> {
    const line = this.own.get(options.peer?.key ?? '') ?? this.main;
    return line.notify(method, params, options);
  }

  /** Closes lines of single clients that nobody used for a while. True when there was any. */
  reapOwn(afterMs = idleOwnMs): boolean {
    const idle = [...this.own].filter(([, line]) => line.idleMs > afterMs);
    for (const [key] of idle) this.dropOwn(key);
    return idle.length > 0;
  }

  async close(): Promise<void> {
    await Promise.all([this.main, ...this.own.values()].map((line) => line.close()));
  }

  /**
   * The line of a client of the 2025 era that can be asked, if its server speaks that too. Without room for one more it shares the one of
   * all, where nothing is asked.
   */
  private ownOf(peer: Peer | undefined): UpstreamConnection | undefined {
    if (peer?.era !== 'legacy' || !peer.wantsAlone || this.speaksLegacy === false) return undefined;
    const known = peer.isPassing ? this.idleLike(peer) : this.own.get(peer.key);
    if (known) return known;
    if (!this.hasRoom()) return undefined;
    const line = this.maker.make(peer);
    this.own.set(peer.isPassing ? `${kindOf(peer)} ${peer.key}` : peer.key, line);
    return line;
  }

  /** One that served a passing client of the same kind, and serves nobody now. */
  private idleLike(peer: Peer): UpstreamConnection | undefined {
    for (const [key, line] of this.own) if (line.load === 0 && key.startsWith(`${kindOf(peer)} `)) return line;
    return undefined;
  }

  private hasRoom(): boolean {
    const isFree = (): boolean => this.own.size < mostOwn && this.maker.mayMake();
    return isFree() || (this.reapOwn(0) && isFree());
  }

  private dropOwn(key: string): void {
    void this.own.get(key)?.close();
    this.own.delete(key);
  }
}

/** Clients whose lines are alike. */
function kindOf({ capabilities, logLevel }: Peer): string {
  return JSON.stringify([capabilities, logLevel]);
}

/** The server understood, and will not: no failure of the line. */
function isRefusal(thrown: unknown): boolean {
  const { code, data } = RialtoError.from(thrown);
  if (code === 'remote_error') return true;
  const status = data?.upstreamStatus;
  return typeof status === 'number' && status >= 400 && status < 500 && status !== 401 && status !== 403;
}
