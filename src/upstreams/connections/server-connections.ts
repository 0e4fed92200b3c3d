import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { timeoutSignal, raceSignal } from '../../kernel/abort.js';
import type { Peer } from '../../kernel/peer.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { CallOptions } from './upstream-connection.types.js';
import { isRefusal } from './upstream-error.js';

/** Of single clients, besides the one that everybody uses. */
const maxDedicatedConnections = 15;
/** Of those, of the clients of one caller: nobody keeps the others from being asked. */
const maxDedicatedPerCaller = 10;
const idleDedicatedMs = 60_000;
const sayMs = 5_000;

interface DedicatedConnection {
  readonly connection: UpstreamConnection;
  /** Whose client's it is. */
  readonly caller: string | undefined;
}

export interface ConnectionMaker {
  /** @param peer the client of the 2025 era whose line it is; absent: everybody's. */
  make(peer?: Peer): UpstreamConnection;
  /** Reads what the server has, on the line of all, and keeps it; why that failed, if it did. */
  read(): Promise<RialtoError | undefined>;
}

/**
 * The lines of one process to one server. All calls share one. What a server of the 2025 era asks, or keeps of an answer, does not say which
 * call it is for: a client that can be asked has a line of its own, so that nobody is asked for what another caused.
 */
export class ServerConnections {
  readonly shared: UpstreamConnection;
  /** By the keys of their clients. */
  private readonly dedicated = new Map<string, DedicatedConnection>();
  private speaksLegacy?: boolean;
  /** Since when lines are connected that it was read for what the server has. */
  private readonly readSince = new WeakMap<UpstreamConnection, number>();

  /** @param main the connection that all calls share, where it is open already. */
  constructor(
    private readonly maker: ConnectionMaker,
    main?: UpstreamConnection,
  ) {
    this.shared = main ?? maker.make();
  }

  /** Calls that they have at work. */
  get load(): number {
    return this.all.reduce((sum, { load }) => sum + load, 0);
  }

  /** When the last use of any of them ended, as `systemClock.elapsed` counts; undefined while one is in use. */
  get idleSince(): number | undefined {
    const each = this.all.map(({ idleSince }) => idleSince);
    return each.includes(undefined) ? undefined : Math.max(...(each as number[]));
  }

  private get all(): UpstreamConnection[] {
    return [this.shared, ...[...this.dedicated.values()].map(({ connection: line }) => line)];
  }

  /** Whether the server speaks the 2025 era with us. Throws as UpstreamConnection.request does. */
  async isOfOldEra(options: CallOptions): Promise<boolean> {
    await this.shared.ready(options);
    return this.shared.era === 'legacy';
  }

  /** Throws as UpstreamConnection.request does, and `unavailable` where it cannot be read what the server has by now. */
  request(method: string, params: JsonObject, options: CallOptions): Promise<JsonObject> {
    const line = this.dedicatedFor(options);
    if (!line || options.peer!.isPassing) return this.requestOn(line ?? this.shared, method, params, options);
    return this.requestDedicated(line, method, params, options);
  }

  private async requestDedicated(
    line: UpstreamConnection,
    method: string,
    params: JsonObject,
    options: CallOptions,
  ): Promise<JsonObject> {
    try {
      await line.ready(options);
      this.speaksLegacy = true;
    } catch (thrown) {
      if (this.speaksLegacy || !isRefusal(RialtoError.from(thrown))) throw thrown;
      this.speaksLegacy = false;
      this.dropDedicated(options.peer!.key);
      return this.requestOn(this.shared, method, params, options);
    }
    return this.requestOn(line, method, params, options);
  }

  private requestOn(
    line: UpstreamConnection,
    method: string,
    params: JsonObject,
    options: CallOptions,
  ): Promise<JsonObject> {
    const { stillMay } = options;
    const opened = stillMay && (() => (this.isRead(line) ? undefined : this.readAgain(line, options, stillMay)));
    return line.request(method, params, { ...options, opened });
  }

  private isRead(line: UpstreamConnection): boolean {
    return line.connectedAt !== undefined && this.readSince.get(line) === line.connectedAt;
  }

  /** A server that was connected anew may be another: what it has is read before it is asked to do anything. */
  private async readAgain(
    line: UpstreamConnection,
    { timeoutMs, signal }: CallOptions,
    stillMay: () => Promise<void>,
  ): Promise<void> {
    const { connectedAt } = line;
    const patience = timeoutSignal(timeoutMs, [signal]);
    const late = (): RialtoError => new RialtoError(signal?.aborted ? 'canceled' : 'remote_timeout');
    const failure = await raceSignal(patience.signal, this.maker.read(), late).finally(patience.end);
    if (failure) throw failure.code === 'unavailable' ? failure : unread(failure);
    if (connectedAt !== undefined) this.readSince.set(line, connectedAt);
    await stillMay();
  }

  /** By the line of its client where it has one. Throws as UpstreamConnection.notify does. */
  notify(method: string, params: JsonObject, options: CallOptions): Promise<void> {
    const line = this.dedicated.get(options.peer?.key ?? '')?.connection ?? this.shared;
    return line.notify(method, params, options);
  }

  /** Says so on the line of a client; one that is opened later says nothing of the time before. */
  rootsChanged(key: string): void {
    const line = this.dedicated.get(key)?.connection;
    if (line?.status !== 'ready') return;
    void line.notify('notifications/roots/list_changed', {}, { timeoutMs: sayMs }).catch(() => undefined);
  }

  /** Closes lines of single clients that nobody used for a while. True when there was any. @param of whose alone; absent: of all. */
  closeIdle(afterMs = idleDedicatedMs, of?: string): boolean {
    const isOf = (own: DedicatedConnection): boolean => of === undefined || own.caller === of;
    const until = systemClock.elapsed() - afterMs;
    const idle = [...this.dedicated].filter(([, own]) => (own.connection.idleSince ?? Infinity) <= until && isOf(own));
    for (const [key] of idle) this.dropDedicated(key);
    return idle.length > 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((line) => line.close()));
  }

  /**
   * The line of a client of the 2025 era that can be asked, if its server speaks that too. Without room for one more it shares the one of
   * all, where nothing is asked.
   */
  private dedicatedFor({ peer, caller }: CallOptions): UpstreamConnection | undefined {
    if (peer?.era !== 'legacy' || !peer.wantsAlone || this.speaksLegacy === false) return undefined;
    const kind = peer.isPassing ? `${kindOf(peer, caller)} ` : '';
    const known = peer.isPassing ? this.idleLike(kind) : this.dedicated.get(peer.key)?.connection;
    if (known) return known;
    if (!this.hasRoomFor(caller)) return undefined;
    const line = this.maker.make(peer);
    this.dedicated.set(`${kind}${peer.key}`, { connection: line, caller });
    return line;
  }

  /** One that served a passing client of the same kind, and serves nobody now. */
  private idleLike(kind: string): UpstreamConnection | undefined {
    for (const [key, { connection: line }] of this.dedicated) if (line.load === 0 && key.startsWith(kind)) return line;
    return undefined;
  }

  /** Makes room by what is idle: of the caller who has too many, else of everybody. */
  private hasRoomFor(caller: string | undefined): boolean {
    const hasFew = (): boolean =>
      [...this.dedicated.values()].filter((own) => own.caller === caller).length < maxDedicatedPerCaller;
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

/** Clients whose lines are alike: of one caller, for a server may keep with a session what that caller told it. */
function kindOf({ capabilities, logLevel }: Peer, caller: string | undefined): string {
  return JSON.stringify([caller, capabilities, logLevel]);
}

function unread(cause: RialtoError): RialtoError {
  const message = 'what the MCP server has could not be read, so that nobody knows whether its tools changed';
  return new RialtoError('unavailable', {
    message,
    data: cause.data?.server ? { server: cause.data.server } : undefined,
    cause,
  });
}
