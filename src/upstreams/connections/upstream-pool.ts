import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import type { ProgramOwner } from '../programs/program-caches.js';
import { ProbedConnection } from './probed-connection.js';
import { ProgramSlots } from '../programs/program-slots.js';
import { ServerConnections, type ConnectionMaker } from './server-connections.js';
import { completed, nothingYet } from '../storage/offer.js';
import type { Offer } from '../upstream.types.js';
import type { Load } from '../storage/tool-choice.js';
import { UpstreamConnection } from './upstream-connection.js';
import type { ConnectionOptions } from './upstream-connection.types.js';
import {
  SealedEndpoints,
  withHeaders,
  type Endpoint,
  type Place,
  type UserCredential,
} from '../storage/sealed-endpoints.js';
import { UpstreamTransports } from '../transports/upstream-transports.js';

const idleMs = 600_000;
/** Maximum number of per-user connections of one org in one process. */
const usersPerOrg = 200;
const reapMs = 30_000;

/** Members of a row that a connection to its server depends on. */
export type Addressed = Place &
  Pick<
    McpServerEntity,
    'id' | 'orgId' | 'serverId' | 'autoReconnect' | 'roots' | 'source' | 'userCredentials' | 'userHeaders' | 'era'
  > &
  Partial<Pick<McpServerEntity, 'offer'>>;

/** Caller that owns the connection; absent for the shared connections. */
type Caller = string | undefined;

/** Offer of a server, and the connection that it was read on. */
export interface Probed {
  readonly offer: Offer;
  /** Open connection; only for a program. */
  readonly kept?: ProbedConnection;
  readonly close: () => Promise<void>;
  /** Ends the protection of the downloads of the program: from now on only its row protects them. */
  readonly forget: () => void;
}

interface Known {
  readonly server: Addressed;
  /** Owner of the connections; absent for shared connections. */
  readonly user?: UserCredential;
  readonly connections: ServerConnections;
}

/**
 * Connections of this process to MCP servers: separate for each row, so that orgs share none, and for each user with a
 * credential. Closes connections that are not used.
 */
@Injectable()
export class UpstreamPool implements OnApplicationShutdown {
  private readonly known = new Map<string, Known>();
  /** Servers that are probed before they have a row. */
  private readonly probed = new Set<ProgramOwner>();
  private readonly reaper = setInterval(() => this.reap(), reapMs).unref();
  /** Number of watchers of each resource, by the key of the connections. */
  private readonly watched = new Map<string, Map<string, number>>();
  private tellChanged: (server: Addressed, user?: UserCredential) => void = () => undefined;
  private read: (server: Addressed, user?: UserCredential) => Promise<RialtoError | undefined> = () =>
    Promise.resolve(undefined);
  private tellUpdated: (server: Addressed, uri: string, caller: Caller) => void = () => undefined;
  private tellHeard: (server: Addressed, method: string, params: JsonObject, caller: Caller) => void = () => undefined;
  /** Number of callers that keep connections open, by the key of the connections. */
  private readonly attended = new Map<string, number>();

  constructor(
    private readonly transports: UpstreamTransports,
    private readonly places: SealedEndpoints,
    private readonly slots: ProgramSlots,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Sets the listener for changed tools of a server, for one user or for all, and the function that reads the offer at
   * once and resolves with the failure.
   */
  onChanged(tell: typeof this.tellChanged, read: typeof this.read): void {
    this.tellChanged = tell;
    this.read = read;
  }

  /** Sets the listener for changes of watched resources. */
  onUpdated(tell: typeof this.tellUpdated): void {
    this.tellUpdated = tell;
  }

  /** Sets the listener for all notifications of servers; for a per-user connection it gets the caller. */
  onHeard(tell: typeof this.tellHeard): void {
    this.tellHeard = tell;
  }

  /**
   * Returns the connections to a server, shared or of one user. Replaces them when the address or the credential
   * changed. Throws `unavailable` when there is no room for one more user.
   */
  to(server: Addressed, user?: UserCredential): ServerConnections {
    const key = connectionKey(server, user);
    const known = this.known.get(key);
    if (known && isSame(known, server, user)) return known.connections;
    if (known) void this.endConnections(key);
    if (user) this.makeRoomForUser(server.orgId);
    const endpoint = this.places.endpointOf(server, user);
    return this.addConnections(server, user, endpoint);
  }

  /** @param main the shared connection, when it is open already. */
  private addConnections(
    server: Addressed,
    user: UserCredential | undefined,
    endpoint: Endpoint,
    main?: UpstreamConnection,
  ): ServerConnections {
    const key = connectionKey(server, user);
    const { autoReconnect, roots } = server;
    const isProgram = server.transport === 'stdio';
    const make: ConnectionMaker['make'] = (owner) =>
      this.newConnection({
        of: server,
        endpoint,
        slots: isProgram ? this.slots.slotsOf(server.orgId, owner ? 'own' : 'shared') : undefined,
        autoReconnect,
        roots,
        changed: () => this.tellChanged(server, user),
        ...(owner
          ? { owner, era: 'legacy' }
          : {
              era: server.era,
              wantsInitialize: server.offer?.wantsInitialize,
              heard: (...message) => this.heard(server, user, ...message),
            }),
      });
    const connections = new ServerConnections({ make, read: () => this.read(server, user) }, main);
    this.known.set(key, { server, user, connections });
    for (const uri of this.watched.get(key)?.keys() ?? []) connections.shared.watch(uri);
    return connections;
  }

  /** Keeps a connection open for changes of a resource, until the returned function is called. Throws as `to` does. */
  watch(server: Addressed, uri: string, user?: UserCredential): () => void {
    const { shared } = this.to(server, user);
    const key = connectionKey(server, user);
    const uris = this.watched.get(key) ?? new Map<string, number>();
    this.watched.set(key, uris);
    uris.set(uri, (uris.get(uri) ?? 0) + 1);
    if (uris.get(uri) === 1) shared.watch(uri);
    return () => {
      const left = uris.get(uri)! - 1;
      if (left > 0) return void uris.set(uri, left);
      uris.delete(uri);
      if (uris.size === 0) this.watched.delete(key);
      this.known.get(key)?.connections.shared.unwatch(uri);
    };
  }

  /** Prevents that the idle connection is closed, until the returned function is called. */
  attend(server: Addressed, user?: UserCredential): () => void {
    const key = connectionKey(server, user);
    this.attended.set(key, (this.attended.get(key) ?? 0) + 1);
    return () => {
      const left = this.attended.get(key)! - 1;
      if (left > 0) this.attended.set(key, left);
      else this.attended.delete(key);
    };
  }

  /** Returns the existing connection, shared or of one user. */
  lineTo(server: Addressed, user?: UserCredential): UpstreamConnection | undefined {
    const known = this.known.get(connectionKey(server, user));
    return known && isSame(known, server, user) ? known.connections.shared : undefined;
  }

  /** Returns the load of this process on the connections. */
  loadOf(server: Addressed, user?: UserCredential): Load {
    const connections = this.known.get(connectionKey(server, user))?.connections;
    return { isResting: connections?.shared.status === 'error', calls: connections?.load ?? 0 };
  }

  /**
   * Reads the offer of a server that may have no row yet, and closes the connection. Throws as
   * UpstreamTransports.checkEndpoint and UpstreamConnection.request do.
   */
  async probe(of: ProgramOwner, endpoint: Endpoint, used: Pick<Addressed, 'roots' | 'era'>): Promise<Offer> {
    const probed = await this.probeToKeep(of, endpoint, { ...used, autoReconnect: true });
    await probed.close();
    return probed.offer;
  }

  /**
   * Reads the offer like `probe`, but leaves the connection to a program open: a row adopts it, or the caller closes
   * it. A connection to any other server is closed, because it is cheap to open. Throws as `probe` does, and leaves no
   * connection open then.
   */
  async probeToKeep(
    of: ProgramOwner,
    endpoint: Endpoint,
    used: Pick<Addressed, 'roots' | 'era' | 'autoReconnect'>,
  ): Promise<Probed> {
    this.transports.checkEndpoint(endpoint);
    const owner = { orgId: of.orgId, serverId: of.serverId };
    const open = (hooks: Pick<ConnectOptions, 'slots' | 'changed' | 'heard'>): UpstreamConnection =>
      this.newConnection({ ...used, ...hooks, of: owner, endpoint });
    const kept =
      endpoint.transport === 'stdio' ? new ProbedConnection(this.slots.slotsOf(of.orgId, 'shared'), open) : undefined;
    const connection = kept?.connection ?? open({ changed: () => undefined });
    const forget = (): void => void this.probed.delete(owner);
    const close = (): Promise<void> => connection.close().finally(forget);
    this.probed.add(owner);
    try {
      const offer = completed(await connection.offer(), nothingYet);
      if (!kept) await close();
      return { offer, kept, close, forget };
    } catch (thrown) {
      await close();
      throw thrown;
    }
  }

  /**
   * Uses a probed connection for the row that was written after the probe. When that is not possible, the connection is
   * closed and the next call opens another.
   */
  async adopt(server: Addressed, { kept, close, forget }: Probed): Promise<void> {
    if (!kept) return;
    const isClaimed = await kept.claim();
    const key = connectionKey(server);
    const known = this.known.get(key);
    if (!isClaimed || (known && isSame(known, server, undefined))) return void close();
    if (known) void this.endConnections(key);
    this.addConnections(server, undefined, this.places.endpointOf(server), kept.connection);
    kept.adoptedBy({
      changed: () => this.tellChanged(server),
      heard: (...message) => this.heard(server, undefined, ...message),
    });
    forget();
  }

  /** Reads what a server offers to a user with these headers. Throws as `probe` does. */
  probeAs(server: Addressed, headers: Readonly<Record<string, string>>): Promise<Offer> {
    return this.probe(server, withHeaders(this.places.endpointOf(server), headers), server);
  }

  /** Throws `url_not_allowed` or `unprocessable` for an endpoint that may not be connected to. */
  checkEndpoint(endpoint: Endpoint): void {
    this.transports.checkEndpoint(endpoint);
  }

  /** Closes the connections of an org to servers that were deleted or have another address now. */
  keepOnly(org: string, servers: ReadonlyMap<string, Addressed>): void {
    for (const [key, known] of this.known) {
      const server = servers.get(known.server.id);
      if (known.server.orgId !== org || (server && isSame(known, server, known.user))) continue;
      const ended = this.endConnections(key);
      if (!server) void ended.then(() => this.removeDownloads(known.server));
    }
  }

  /** Closes all connections to a server; the next call opens a new one without waiting for a backoff. */
  closeServer(id: string): void {
    for (const [key, { server }] of this.known) if (server.id === id) void this.endConnections(key);
  }

  /**
   * Notifies the servers that a client's roots changed. Servers with configured roots do not use the client's roots.
   */
  rootsChanged(orgId: string, key: string): void {
    for (const { server, connections } of this.known.values())
      if (server.orgId === orgId && server.roots.length === 0) connections.rootsChanged(key);
  }

  /** Closes the connections of one user to a server. */
  dropUser(id: string, caller: string): void {
    void this.endConnections(connectionKey({ id }, { caller }));
  }

  /** Lists the credentials with connections in this process. */
  users(): { readonly server: Addressed; readonly user: UserCredential }[] {
    return [...this.known.values()].flatMap(({ server, user }) => (user ? [{ server, user }] : []));
  }

  /** Closes all connections; running calls have ended before. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.reaper);
    const all = [...this.known.values()];
    this.known.clear();
    await Promise.all(all.map(({ connections }) => connections.close()));
  }

  /** Passes on a notification. Drops updates of resources that are not watched. */
  private heard(server: Addressed, user: UserCredential | undefined, method: string, params: JsonObject): void {
    if (method === 'notifications/resources/updated') {
      if (typeof params.uri !== 'string' || !this.watched.get(connectionKey(server, user))?.has(params.uri)) return;
      this.tellUpdated(server, params.uri, user?.caller);
    }
    this.tellHeard(server, method, params, user?.caller);
  }

  private async endConnections(key: string): Promise<void> {
    const known = this.known.get(key);
    this.known.delete(key);
    await known?.connections.close();
  }

  /** Removes the downloads of a deleted server, unless another server uses its name now. */
  private async removeDownloads(deleted: ProgramOwner): Promise<void> {
    const present = [...this.probed, ...[...this.known.values()].map(({ server }) => server)];
    const hasSameName = ({ orgId, serverId }: ProgramOwner): boolean =>
      orgId === deleted.orgId && serverId === deleted.serverId;
    if (!present.some(hasSameName)) await this.transports.removeDownloads(deleted);
  }

  private newConnection({ of, endpoint, ...options }: ConnectOptions): UpstreamConnection {
    const transport = () => this.transports.openTransport(endpoint, of);
    return new UpstreamConnection({ ...options, server: of.serverId, transport, transportKind: endpoint.transport });
  }

  /**
   * Closes the per-user connections of the org that were idle for longest; attended ones do not count as idle. Throws
   * `unavailable` when all are in use.
   */
  private makeRoomForUser(org: string): void {
    const users = [...this.known.values()].filter(({ server, user }) => user && server.orgId === org);
    if (users.length < usersPerOrg) return;
    const free = users.filter(({ server, user }) => !this.attended.has(connectionKey(server, user)));
    this.endLongestIdle(
      free,
      `all ${usersPerOrg} users of this org that may have their own connections are using them`,
    );
  }

  private endLongestIdle(among: readonly Known[], message: string): void {
    // Compares points in time and not durations, because the clock moves between two comparisons. The first opened wins
    // a tie.
    const idle = among.flatMap((known) => {
      const { idleSince } = known.connections;
      return idleSince === undefined ? [] : [{ known, idleSince }];
    });
    const longestIdle = idle.toSorted((one, other) => one.idleSince - other.idleSince)[0]?.known;
    if (!longestIdle) throw new RialtoError('unavailable', { message, data: { retryAfterSeconds: 5 } });
    void this.endConnections(connectionKey(longestIdle.server, longestIdle.user));
  }

  private reap(): void {
    const until = systemClock.elapsed() - idleMs;
    for (const [key, { server, connections }] of this.known) {
      connections.closeIdle();
      if ((connections.idleSince ?? Infinity) > until || this.attended.has(key)) continue;
      this.log.debug({ server: server.serverId }, 'closed the idle connection to an MCP server');
      void this.endConnections(key);
    }
  }
}

type ConnectOptions = Omit<ConnectionOptions, 'server' | 'transport' | 'transportKind'> & {
  readonly of: ProgramOwner;
  readonly endpoint: Endpoint;
};

function connectionKey({ id }: Pick<Addressed, 'id'>, user?: Pick<UserCredential, 'caller'>): string {
  return user ? `${id} ${user.caller}` : id;
}

function isSame(known: Known, server: Addressed, user: UserCredential | undefined): boolean {
  return known.user?.id === user?.id && addressOf(known.server) === addressOf(server);
}

/** Each call needs the address of the same few objects. */
const addresses = new WeakMap<Addressed, string>();

function addressOf(server: Addressed): string {
  const known = addresses.get(server);
  if (known !== undefined) return known;
  const { transport, url, program, secrets, autoReconnect, roots, userCredentials, userHeaders, era } = server;
  const parts = [transport, url, program, secrets, autoReconnect, roots, userCredentials, userHeaders, era];
  const address = JSON.stringify(parts);
  addresses.set(server, address);
  return address;
}
