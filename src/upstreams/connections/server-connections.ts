import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { withTimeout } from '../../kernel/abort.js';
import type { Peer } from '../../kernel/peer.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { CallLimits, CallOptions } from './upstream-connection.types.js';
import { isRefusal } from './upstream-error.js';

/** Maximum number of connections of single clients, besides the shared connection. */
const maxDedicatedConnections = 15;
/** Maximum number of those for the clients of one caller, so that one caller cannot use them all. */
const maxDedicatedPerCaller = 10;
const idleDedicatedMs = 60_000;
const notifyMs = 5_000;

interface DedicatedConnection {
  readonly connection: UpstreamConnection;
  /** Caller that owns the client. */
  readonly caller: string | undefined;
}

export interface ConnectionMaker {
  /** @param peer the client of the 2025 era that owns the connection; absent for the shared connection. */
  make(peer?: Peer): UpstreamConnection;
  /**
   * Reads the offer of the server on the shared connection and stores it. Resolves with the failure, if there is one.
   */
  read(): Promise<RialtoError | undefined>;
}

/**
 * Connections of one process to one server. Most calls share one connection. A server of the 2025 era does not say to
 * which call a request of its own, or a state that it keeps, belongs. So a client that can be asked has its own
 * connection, and no client is asked about the call of another.
 */
export class ServerConnections {
  readonly shared: UpstreamConnection;
  /** Connections of single clients, by the keys of the clients. */
  private readonly dedicated = new Map<string, DedicatedConnection>();
  private speaksLegacy?: boolean;
  /** Value of `connectedAt` for which the offer was read, by connection. */
  private readonly readSince = new WeakMap<UpstreamConnection, number>();

  /** @param main the connection that all calls share, when it is open already. */
  constructor(
    private readonly maker: ConnectionMaker,
    main?: UpstreamConnection,
  ) {
    this.shared = main ?? maker.make();
  }

  /** Number of running calls. */
  get load(): number {
    return this.all.reduce((sum, { load }) => sum + load, 0);
  }

  /** When the last use of any connection ended, as `systemClock.elapsed` counts; undefined while one is in use. */
  get idleSince(): number | undefined {
    const each = this.all.map(({ idleSince }) => idleSince);
    return each.includes(undefined) ? undefined : Math.max(...(each as number[]));
  }

  private get all(): UpstreamConnection[] {
    return [this.shared, ...[...this.dedicated.values()].map(({ connection }) => connection)];
  }

  /** Returns whether the server speaks a revision of the 2025 era. Throws as UpstreamConnection.request does. */
  async isOfOldEra(options: CallOptions): Promise<boolean> {
    await this.shared.ready(options);
    return this.shared.era === 'legacy';
  }

  /**
   * Returns the connection for a call; a promise only when it must open first. An idle connection may be chosen for two
   * calls, so the first one must use it in the same turn. Throws as UpstreamConnection.ready does.
   */
  chooseConnection(options: CallOptions): UpstreamConnection | Promise<UpstreamConnection> {
    const connection = this.dedicatedFor(options);
    if (!connection) return this.shared;
    return options.peer!.isPassing ? connection : this.openDedicated(connection, options);
  }

  /** Opens the own connection of a client, or returns the shared one when the server speaks only the later era. */
  private async openDedicated(connection: UpstreamConnection, options: CallOptions): Promise<UpstreamConnection> {
    try {
      await connection.ready(options);
      this.speaksLegacy = true;
      return connection;
    } catch (thrown) {
      if (this.speaksLegacy || !isRefusal(RialtoError.from(thrown))) throw thrown;
      this.speaksLegacy = false;
      this.dropDedicated(options.peer!.key);
      return this.shared;
    }
  }

  /** Returns whether the offer of the server was read since the connection opened. */
  isRead(connection: UpstreamConnection): boolean {
    return connection.connectedAt !== undefined && this.readSince.get(connection) === connection.connectedAt;
  }

  /**
   * Reads the offer of a newly connected server before a tool is called: the server may have been replaced. Throws
   * `unavailable` when the offer cannot be read, `remote_timeout`, and `canceled`.
   */
  async readOffer(connection: UpstreamConnection, { timeoutMs, signal }: CallLimits): Promise<void> {
    const { connectedAt } = connection;
    const timedOut = (): RialtoError => new RialtoError(signal?.aborted ? 'canceled' : 'remote_timeout');
    const failure = await withTimeout(timeoutMs, [signal], () => this.maker.read(), timedOut);
    if (failure) throw failure.code === 'unavailable' ? failure : unreadOffer(failure);
    if (connectedAt !== undefined) this.readSince.set(connection, connectedAt);
  }

  /**
   * Sends a notification, on the client's own connection when there is one. Throws as UpstreamConnection.notifyServer
   * does.
   */
  notifyServer(method: string, params: JsonObject, options: CallOptions): Promise<void> {
    const connection = this.dedicated.get(options.peer?.key ?? '')?.connection ?? this.shared;
    return connection.notifyServer(method, params, options);
  }

  /** Notifies the server on the connection of a client. A connection that is not open needs no notification. */
  rootsChanged(key: string): void {
    const connection = this.dedicated.get(key)?.connection;
    if (connection?.status !== 'ready') return;
    void connection
      .notifyServer('notifications/roots/list_changed', {}, { timeoutMs: notifyMs })
      .catch(() => undefined);
  }

  /**
   * Closes connections of single clients that were idle for a while. Returns whether there were any.
   * @param of the only caller to consider; absent for all callers.
   */
  closeIdle(afterMs = idleDedicatedMs, of?: string): boolean {
    const isOf = (dedicated: DedicatedConnection): boolean => of === undefined || dedicated.caller === of;
    const until = systemClock.elapsed() - afterMs;
    const idle = [...this.dedicated].filter(
      ([, dedicated]) => (dedicated.connection.idleSince ?? Infinity) <= until && isOf(dedicated),
    );
    for (const [key] of idle) this.dropDedicated(key);
    return idle.length > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((connection) => connection.close()));
  }

  /**
   * Returns the own connection of a client of the 2025 era that can be asked, when the server speaks that era too.
   * Without room for one more, the client uses the shared connection, where no requests of the server are passed on.
   */
  private dedicatedFor({ peer, caller }: CallOptions): UpstreamConnection | undefined {
    if (peer?.era !== 'legacy' || !peer.wantsAlone || this.speaksLegacy === false) return undefined;
    const kind = peer.isPassing ? `${kindOf(peer, caller)} ` : '';
    const known = peer.isPassing ? this.idleOfKind(kind) : this.dedicated.get(peer.key)?.connection;
    if (known) return known;
    if (!this.hasRoomFor(caller)) return undefined;
    const connection = this.maker.make(peer);
    this.dedicated.set(`${kind}${peer.key}`, { connection, caller });
    return connection;
  }

  /** Returns an idle connection of a passing client of the same kind. */
  private idleOfKind(kind: string): UpstreamConnection | undefined {
    for (const [key, { connection }] of this.dedicated)
      if (connection.load === 0 && key.startsWith(kind)) return connection;
    return undefined;
  }

  /** Makes room by closing idle connections: those of the caller when it has too many, else those of any caller. */
  private hasRoomFor(caller: string | undefined): boolean {
    const hasFew = (): boolean =>
      [...this.dedicated.values()].filter((dedicated) => dedicated.caller === caller).length < maxDedicatedPerCaller;
    const isFree = (): boolean => this.dedicated.size < maxDedicatedConnections;
    if (!hasFew()) this.closeIdle(0, caller);
    if (hasFew() && !isFree()) this.closeIdle(0);
    return hasFew() && isFree();
  }

  private dropDedicated(key: string): void {
    void this.dedicated.get(key)?.connection.close();
    this.dedicated.delete(key);
  }
}

/**
 * Key of clients that can share a connection one after the other. It includes the caller, because a server may store
 * data of the caller in its session.
 */
function kindOf({ capabilities, logLevel }: Peer, caller: string | undefined): string {
  return JSON.stringify([caller, capabilities, logLevel]);
}

function unreadOffer(cause: RialtoError): RialtoError {
  const message =
    'the tools of the MCP server could not be read again after a new connection, so the call was not sent';
  return new RialtoError('unavailable', {
    message,
    data: cause.data?.server ? { server: cause.data.server } : undefined,
    cause,
  });
}
