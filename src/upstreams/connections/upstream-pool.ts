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
/** Lines to servers as single users of one org, in one process. */
const usersPerOrg = 200;
const reapMs = 30_000;

/** A row, as far as a line to its server depends on it. */
export type Addressed = Place &
  Pick<
    McpServerEntity,
    'id' | 'orgId' | 'serverId' | 'autoReconnect' | 'roots' | 'source' | 'userCredentials' | 'userHeaders' | 'era'
  > &
  Partial<Pick<McpServerEntity, 'offer'>>;

/** Whoever hears something on lines of a user: absent for lines of all. */
type Caller = string | undefined;

/** What a server offers, and the connection by which it said so. */
export interface Probed {
  readonly offer: Offer;
  /** Of a program. */
  readonly kept?: ProbedConnection;
  readonly close: () => Promise<void>;
  /** From now on what the program downloaded is kept for its row, or not at all. */
  readonly forget: () => void;
}

interface Known {
  readonly server: Addressed;
  /** Whose lines they are; absent: everybody's. */
  readonly user?: UserCredential;
  readonly lines: ServerConnections;
}

/**
 * The lines of this process to MCP servers: of each row its own, so that orgs share none, and of each user who has a credential; those
 * that nobody uses are let go.
 */
@Injectable()
export class UpstreamPool implements OnApplicationShutdown {
  private readonly known = new Map<string, Known>();
  /** Those that are asked what they have before there is a row of them. */
  private readonly probed = new Set<ProgramOwner>();
  private readonly reaper = setInterval(() => this.reap(), reapMs).unref();
  /** By the key of lines, how many want to hear of each resource. */
  private readonly watched = new Map<string, Map<string, number>>();
  private tellChanged: (server: Addressed, user?: UserCredential) => void = () => undefined;
  private read: (server: Addressed, user?: UserCredential) => Promise<RialtoError | undefined> = () =>
    Promise.resolve(undefined);
  private tellUpdated: (server: Addressed, uri: string, caller: Caller) => void = () => undefined;
  private tellHeard: (server: Addressed, method: string, params: JsonObject, caller: Caller) => void = () => undefined;
  /** By the key of lines, how many want them kept open. */
  private readonly attended = new Map<string, number>();

  constructor(
    private readonly transports: UpstreamTransports,
    private readonly places: SealedEndpoints,
    private readonly slots: ProgramSlots,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Who is told that a server may have other tools now, for one user or for all; and who reads them at once, and says why that failed. */
  onChanged(tell: typeof this.tellChanged, read: typeof this.read): void {
    this.tellChanged = tell;
    this.read = read;
  }

  /** Who is told that a watched resource changed. */
  onUpdated(tell: typeof this.tellUpdated): void {
    this.tellUpdated = tell;
  }

  /** Who is told of whatever servers say on lines of all, and on those of single users with the caller. */
  onHeard(tell: typeof this.tellHeard): void {
    this.tellHeard = tell;
  }

  /**
   * The lines to a server, of all or of one user; others when its address or the credential is another. Throws `unavailable` where there
   * is no room for one more user.
   */
  to(server: Addressed, user?: UserCredential): ServerConnections {
    const key = keyOf(server, user);
    const known = this.known.get(key);
    if (known && isSame(known, server, user)) return known.lines;
    if (known) void this.end(key);
    if (user) this.makeRoomForUser(server.orgId);
    const endpoint = this.places.endpointOf(server, user);
    return this.keep(server, user, endpoint);
  }

  /** @param main the connection of all calls, where it is open already. */
  private keep(
    server: Addressed,
    user: UserCredential | undefined,
    endpoint: Endpoint,
    main?: UpstreamConnection,
  ): ServerConnections {
    const key = keyOf(server, user);
    const { autoReconnect, roots } = server;
    const isProgram = server.transport === 'stdio';
    const make: ConnectionMaker['make'] = (owner) =>
      this.line({
        of: server,
        endpoint,
        slots: isProgram ? this.slots.of(server.orgId, owner ? 'own' : 'shared') : undefined,
        autoReconnect,
        roots,
        changed: () => this.tellChanged(server, user),
        ...(owner
          ? { owner, era: 'legacy' }
          : {
              era: server.era,
              wantsInitialize: server.offer?.wantsInitialize,
              heard: (...said) => this.heard(server, user, ...said),
            }),
      });
    const lines = new ServerConnections({ make, read: () => this.read(server, user) }, main);
    this.known.set(key, { server, user, lines });
    for (const uri of this.watched.get(key)?.keys() ?? []) lines.shared.watch(uri);
    return lines;
  }

  /** Keeps a line open that tells of the changes of a resource, until what it returns is called. Throws as `to` does. */
  watch(server: Addressed, uri: string, user?: UserCredential): () => void {
    const { shared } = this.to(server, user);
    const key = keyOf(server, user);
    const uris = this.watched.get(key) ?? new Map<string, number>();
    this.watched.set(key, uris);
    uris.set(uri, (uris.get(uri) ?? 0) + 1);
    if (uris.get(uri) === 1) shared.watch(uri);
    return () => {
      const left = uris.get(uri)! - 1;
      if (left > 0) return void uris.set(uri, left);
      uris.delete(uri);
      if (uris.size === 0) this.watched.delete(key);
      this.known.get(key)?.lines.shared.unwatch(uri);
    };
  }

  /** Lets nobody end the line of all, or of a user, for its idleness, until what it returns is called. */
  attend(server: Addressed, user?: UserCredential): () => void {
    const key = keyOf(server, user);
    this.attended.set(key, (this.attended.get(key) ?? 0) + 1);
    return () => {
      const left = this.attended.get(key)! - 1;
      if (left > 0) this.attended.set(key, left);
      else this.attended.delete(key);
    };
  }

  /** The line that there is, of all calls or of those of one user. */
  lineTo(server: Addressed, user?: UserCredential): UpstreamConnection | undefined {
    const known = this.known.get(keyOf(server, user));
    return known && isSame(known, server, user) ? known.lines.shared : undefined;
  }

  /** What this process has at work there. */
  loadOf(server: Addressed, user?: UserCredential): Load {
    const lines = this.known.get(keyOf(server, user))?.lines;
    return { isResting: lines?.shared.status === 'error', calls: lines?.load ?? 0 };
  }

  /**
   * What a server offers that may be no row yet; leaves no connection behind. Throws as UpstreamTransports.check and
   * UpstreamConnection.request do.
   */
  async probe(of: ProgramOwner, endpoint: Endpoint, used: Pick<Addressed, 'roots' | 'era'>): Promise<Offer> {
    const probed = await this.probeToKeep(of, endpoint, { ...used, autoReconnect: true });
    await probed.close();
    return probed.offer;
  }

  /**
   * The same, with the connection to a program left open: its row adopts it, or it is to be closed. One to another server is closed, as it costs
   * nothing to open. Throws as `probe` does, and leaves no connection behind then.
   */
  async probeToKeep(
    of: ProgramOwner,
    endpoint: Endpoint,
    used: Pick<Addressed, 'roots' | 'era' | 'autoReconnect'>,
  ): Promise<Probed> {
    this.transports.check(endpoint);
    const owner = { orgId: of.orgId, serverId: of.serverId };
    const open = (hooks: Pick<LineOptions, 'slots' | 'changed' | 'heard'>): UpstreamConnection =>
      this.line({ ...used, ...hooks, of: owner, endpoint });
    const kept =
      endpoint.transport === 'stdio' ? new ProbedConnection(this.slots.of(of.orgId, 'shared'), open) : undefined;
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

  /** Takes a probed connection over for the row that was written of it; where that cannot be, it is closed and the next call opens another. */
  async adopt(server: Addressed, { kept, close, forget }: Probed): Promise<void> {
    if (!kept) return;
    const isClaimed = await kept.claim();
    const key = keyOf(server);
    const known = this.known.get(key);
    if (!isClaimed || (known && isSame(known, server, undefined))) return void close();
    if (known) void this.end(key);
    this.keep(server, undefined, this.places.endpointOf(server), kept.connection);
    kept.adoptedBy({
      changed: () => this.tellChanged(server),
      heard: (...said) => this.heard(server, undefined, ...said),
    });
    forget();
  }

  /** What a server offers a user who sends these headers. Throws as `probe` does. */
  probeAs(server: Addressed, headers: Readonly<Record<string, string>>): Promise<Offer> {
    return this.probe(server, withHeaders(this.places.endpointOf(server), headers), server);
  }

  /** Throws `url_not_allowed` or `unprocessable` for a place that no line may lead to. */
  check(endpoint: Endpoint): void {
    this.transports.check(endpoint);
  }

  /** Ends the lines of an org whose server is gone, or elsewhere. */
  keepOnly(org: string, servers: ReadonlyMap<string, Addressed>): void {
    for (const [key, known] of this.known) {
      const server = servers.get(known.server.id);
      if (known.server.orgId !== org || (server && isSame(known, server, known.user))) continue;
      const ended = this.end(key);
      if (!server) void ended.then(() => this.forget(known.server));
    }
  }

  /** Ends the lines to a server, of all and of every user; the next call opens another, whatever happened before. */
  drop(id: string): void {
    for (const [key, { server }] of this.known) if (server.id === id) void this.end(key);
  }

  /** Those that a configuration gave roots to have no use for those of a client. */
  rootsChanged(orgId: string, key: string): void {
    for (const { server, lines } of this.known.values())
      if (server.orgId === orgId && server.roots.length === 0) lines.rootsChanged(key);
  }

  /** Ends the lines of one user to a server. */
  dropUser(id: string, caller: string): void {
    void this.end(keyOf({ id }, { caller }));
  }

  /** The credentials that have lines here. */
  users(): { readonly server: Addressed; readonly user: UserCredential }[] {
    return [...this.known.values()].flatMap(({ server, user }) => (user ? [{ server, user }] : []));
  }

  /** Calls that are under way were answered before. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.reaper);
    const all = [...this.known.values()];
    this.known.clear();
    await Promise.all(all.map(({ lines }) => lines.close()));
  }

  /** A resource that nobody watches is nobody's to hear of. */
  private heard(server: Addressed, user: UserCredential | undefined, method: string, params: JsonObject): void {
    if (method === 'notifications/resources/updated') {
      if (typeof params.uri !== 'string' || !this.watched.get(keyOf(server, user))?.has(params.uri)) return;
      this.tellUpdated(server, params.uri, user?.caller);
    }
    this.tellHeard(server, method, params, user?.caller);
  }

  private async end(key: string): Promise<void> {
    const known = this.known.get(key);
    this.known.delete(key);
    await known?.lines.close();
  }

  /** What is kept for a server that is gone goes too, but for another that has its name by now. */
  private async forget(gone: ProgramOwner): Promise<void> {
    const others = [...this.probed, ...[...this.known.values()].map(({ server }) => server)];
    const isNamedSo = ({ orgId, serverId }: ProgramOwner): boolean =>
      orgId === gone.orgId && serverId === gone.serverId;
    if (!others.some(isNamedSo)) await this.transports.forget(gone);
  }

  private line({ of, endpoint, ...options }: LineOptions): UpstreamConnection {
    const transport = () => this.transports.open(endpoint, of);
    return new UpstreamConnection({ ...options, server: of.serverId, transport, transportKind: endpoint.transport });
  }

  /** Ends the lines of the user who used them longest ago. Throws `unavailable` when all of the org are at work. Those that somebody wants kept open are not idle. */
  private makeRoomForUser(org: string): void {
    const users = [...this.known.values()].filter(({ server, user }) => user && server.orgId === org);
    if (users.length < usersPerOrg) return;
    const free = users.filter(({ server, user }) => !this.attended.has(keyOf(server, user)));
    this.endIdlest(free, `${usersPerOrg} users of the org have lines of their own at work`);
  }

  private endIdlest(among: readonly Known[], message: string): void {
    // Compares moments and not durations, since the clock moves between two comparisons. Ties go to the first opened.
    const idle = among.flatMap((known) => {
      const { idleSince } = known.lines;
      return idleSince === undefined ? [] : [{ known, idleSince }];
    });
    const idlest = idle.toSorted((one, other) => one.idleSince - other.idleSince)[0]?.known;
    if (!idlest) throw new RialtoError('unavailable', { message, data: { retryAfterSeconds: 5 } });
    void this.end(keyOf(idlest.server, idlest.user));
  }

  private reap(): void {
    const until = systemClock.elapsed() - idleMs;
    for (const [key, { server, lines }] of this.known) {
      lines.closeIdle();
      if ((lines.idleSince ?? Infinity) > until || this.attended.has(key)) continue;
      this.log.debug({ server: server.serverId }, 'the line to an MCP server is let go: nobody uses it');
      void this.end(key);
    }
  }
}

type LineOptions = Omit<ConnectionOptions, 'server' | 'transport' | 'transportKind'> & {
  readonly of: ProgramOwner;
  readonly endpoint: Endpoint;
};

function keyOf({ id }: Pick<Addressed, 'id'>, user?: Pick<UserCredential, 'caller'>): string {
  return user ? `${id} ${user.caller}` : id;
}

function isSame(known: Known, server: Addressed, user: UserCredential | undefined): boolean {
  return known.user?.id === user?.id && addressOf(known.server) === addressOf(server);
}

/** Each call asks for it, of the same few objects. */
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
