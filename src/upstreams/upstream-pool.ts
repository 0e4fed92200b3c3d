import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { ServerLines, type LineMaker } from './server-lines.js';
import type { Offer, Root } from './upstream.types.js';
import type { Load } from './tool-choice.js';
import { UpstreamConnection } from './upstream-connection.js';
import type { ConnectionOptions } from './upstream-connection.types.js';
import { UpstreamPlaces, type Endpoint, type Place } from './upstream-places.js';
import { UpstreamTransports } from './upstream-transports.js';

const idleMs = 600_000;
/** Programs of one org in one process (reliability-security 4.11). */
const programsPerOrg = 5;
const reapMs = 30_000;

/** A row, as far as a line to its server depends on it. */
export type Addressed = Place &
  Pick<McpServerEntity, 'id' | 'orgId' | 'serverId' | 'autoReconnect' | 'roots' | 'source'>;

interface Known {
  readonly server: Addressed;
  readonly lines: ServerLines;
}

/** The lines of this process to MCP servers: of each row its own, so that orgs share none; those that nobody uses are let go. */
@Injectable()
export class UpstreamPool implements OnApplicationShutdown {
  private readonly known = new Map<string, Known>();
  private readonly reaper = setInterval(() => this.reap(), reapMs).unref();
  /** By row, how many want to hear of each of its resources. */
  private readonly watched = new Map<string, Map<string, number>>();
  private tellChanged: (server: Addressed) => void = () => undefined;
  private tellUpdated: (server: Addressed, uri: string) => void = () => undefined;
  private tellHeard: (server: Addressed, method: string, params: JsonObject) => void = () => undefined;
  /** By row, how many want its line kept open. */
  private readonly attended = new Map<string, number>();

  constructor(
    private readonly transports: UpstreamTransports,
    private readonly places: UpstreamPlaces,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Who is told that a server has other tools now. */
  onChanged(tell: (server: Addressed) => void): void {
    this.tellChanged = tell;
  }

  /** Who is told that a watched resource changed. */
  onUpdated(tell: (server: Addressed, uri: string) => void): void {
    this.tellUpdated = tell;
  }

  /** Who is told of whatever servers say on the lines of all. */
  onHeard(tell: (server: Addressed, method: string, params: JsonObject) => void): void {
    this.tellHeard = tell;
  }

  /** The lines to a server; others when its address is another. */
  to(server: Addressed): ServerLines {
    const known = this.known.get(server.id);
    if (known && isSameAddress(known.server, server)) return known.lines;
    if (known) this.drop(server.id);
    if (server.transport === 'stdio') this.makeRoom(server.orgId);
    const endpoint = this.places.endpointOf(server);
    const { serverId, autoReconnect, roots } = server;
    const make: LineMaker['make'] = (owner) =>
      this.line({
        server: serverId,
        endpoint,
        autoReconnect,
        roots,
        ...(owner
          ? { owner, era: 'legacy', changed: () => undefined }
          : { changed: () => this.tellChanged(server), heard: (...said) => this.heard(server, ...said) }),
      });
    const mayMake = (): boolean => server.transport !== 'stdio' || this.programsOf(server.orgId) < programsPerOrg;
    const lines = new ServerLines({ make, mayMake });
    this.known.set(server.id, { server, lines });
    for (const uri of this.watched.get(server.id)?.keys() ?? []) lines.main.watch(uri);
    return lines;
  }

  /** Keeps a line open that tells of the changes of a resource, until what it returns is called. Throws as `to` does. */
  watch(server: Addressed, uri: string): () => void {
    const { main } = this.to(server);
    const uris = this.watched.get(server.id) ?? new Map<string, number>();
    this.watched.set(server.id, uris);
    uris.set(uri, (uris.get(uri) ?? 0) + 1);
    if (uris.get(uri) === 1) main.watch(uri);
    return () => {
      const left = uris.get(uri)! - 1;
      if (left > 0) return void uris.set(uri, left);
      uris.delete(uri);
      if (uris.size === 0) this.watched.delete(server.id);
      this.known.get(server.id)?.lines.main.unwatch(uri);
    };
  }

  /** Lets nobody end the line of all for its idleness, until what it returns is called. */
  attend({ id }: Addressed): () => void {
    this.attended.set(id, (this.attended.get(id) ?? 0) + 1);
    return () => {
      const left = this.attended.get(id)! - 1;
      if (left > 0) this.attended.set(id, left);
      else this.attended.delete(id);
    };
  }

  /** The line that there is, of all calls. */
  lineTo(server: Addressed): UpstreamConnection | undefined {
    const known = this.known.get(server.id);
    return known && isSameAddress(known.server, server) ? known.lines.main : undefined;
  }

  /** What this process has at work there. */
  loadOf(server: Addressed): Load {
    const lines = this.known.get(server.id)?.lines;
    return { isResting: lines?.main.status === 'error', calls: lines?.load ?? 0 };
  }

  /**
   * What a server offers that may be no row yet; leaves no line behind. Throws as UpstreamTransports.check and UpstreamConnection.request
   * do.
   */
  async probe(serverId: string, endpoint: Endpoint, roots: readonly Root[]): Promise<Offer> {
    this.transports.check(endpoint);
    const connection = this.line({ server: serverId, endpoint, roots, autoReconnect: true, changed: () => undefined });
    try {
      return await connection.offer();
    } finally {
      await connection.close();
    }
  }

  /** Ends the lines of an org whose server is gone, or elsewhere. */
  keepOnly(org: string, servers: ReadonlyMap<string, Addressed>): void {
    for (const [id, known] of this.known) {
      const server = servers.get(id);
      if (known.server.orgId === org && !(server && isSameAddress(known.server, server))) this.drop(id);
    }
  }

  /** Ends the lines to a server; the next call opens another, whatever happened before. */
  drop(id: string): void {
    const known = this.known.get(id);
    this.known.delete(id);
    void known?.lines.close();
  }

  /** Calls that are under way were answered before. */
  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.reaper);
    const all = [...this.known.values()];
    this.known.clear();
    await Promise.all(all.map(({ lines }) => lines.close()));
  }

  /** A resource that nobody watches is nobody's to hear of. */
  private heard(server: Addressed, method: string, params: JsonObject): void {
    if (method === 'notifications/resources/updated') {
      if (typeof params.uri !== 'string' || !this.watched.get(server.id)?.has(params.uri)) return;
      this.tellUpdated(server, params.uri);
    }
    this.tellHeard(server, method, params);
  }

  private line({ endpoint, ...options }: LineOptions): UpstreamConnection {
    return new UpstreamConnection({ ...options, transport: () => this.transports.open(endpoint, options.server) });
  }

  /** Ends the program that was used longest ago. Throws `unavailable` when all of the org are at work. */
  private makeRoom(org: string): void {
    if (this.programsOf(org) < programsPerOrg) return;
    const programs = this.ofPrograms(org);
    if (programs.some(({ lines }) => lines.reapOwn(0))) return;
    const idlest = programs.reduce((one, other) => (other.lines.idleMs > one.lines.idleMs ? other : one));
    if (idlest.lines.idleMs === 0)
      throw new RialtoError('unavailable', {
        message: `the org has ${programsPerOrg} MCP servers at work that are programs`,
        data: { retryAfterSeconds: 5 },
      });
    this.drop(idlest.server.id);
  }

  private programsOf(org: string): number {
    return this.ofPrograms(org).reduce((sum, { lines }) => sum + lines.count, 0);
  }

  private ofPrograms(org: string): Known[] {
    return [...this.known.values()].filter(({ server }) => server.orgId === org && server.transport === 'stdio');
  }

  private reap(): void {
    for (const [id, { server, lines }] of this.known) {
      lines.reapOwn();
      if (lines.idleMs < idleMs || this.attended.has(id)) continue;
      this.log.debug({ server: server.serverId }, 'the line to an MCP server is let go: nobody uses it');
      this.drop(id);
    }
  }
}

type LineOptions = Omit<ConnectionOptions, 'transport'> & { readonly endpoint: Endpoint };

function isSameAddress(one: Addressed, other: Addressed): boolean {
  return addressOf(one) === addressOf(other);
}

function addressOf({ transport, url, program, secrets, autoReconnect, roots }: Addressed): string {
  return JSON.stringify([transport, url, program, secrets, autoReconnect, roots]);
}
