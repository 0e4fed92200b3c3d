import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { OrgId } from '../kernel/ids.js';
import type { Notice } from '../kernel/notices.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { eachInTurns } from '../platform/jobs/in-turns.js';
import { serverOf } from './storage/registered-server.js';
import type { RegisteredServer } from './registered-server.types.js';
import type { UpstreamConnection } from './connections/upstream-connection.js';
import { UpstreamPool } from './connections/upstream-pool.js';
import { UserCredentials, type OwnCredentials } from './credentials/user-credentials.js';
import { UpstreamStore } from './storage/upstream.store.js';

/** Immutable view of all MCP servers of an org, for readers on each request. */
export interface ServerSnapshot {
  readonly version: string;
  /** In order of their ids. */
  readonly servers: readonly RegisteredServer[];
  /** Canonical names of the tools in quarantine, which cannot be called. */
  readonly quarantined: ReadonlySet<string>;
  /** Whether some servers have a different offer for each caller. */
  readonly isPersonal: boolean;
}

/** Provides the MCP servers of an org and their offers. */
@Injectable()
export class UpstreamsService {
  private readonly snapshots = new SnapshotCache<ServerSnapshot>({
    probe: (org) => this.store.version(org),
    load: async (org, version, previous) => {
      const servers = await this.readServers(org as OrgId, previous);
      const isPersonal = servers.some(({ row }) => row.userCredentials !== 'none');
      return { version, servers, quarantined: quarantinedIn(servers), isPersonal };
    },
  });
  /** Snapshots by the credentials of their caller. */
  private readonly personal = new WeakMap<OwnCredentials, { shared: ServerSnapshot; snapshot: ServerSnapshot }>();

  constructor(
    private readonly store: UpstreamStore,
    private readonly pool: UpstreamPool,
    private readonly users: UserCredentials,
    private readonly verbs: VerbBus,
  ) {}

  /** Returns the servers as callers without credentials see them. */
  snapshot(org: string): Promise<ServerSnapshot> {
    return this.snapshots.get(org);
  }

  /** Returns the servers as callers without credentials see them, also changes that the snapshot does not have yet. */
  async current(org: OrgId): Promise<RegisteredServer[]> {
    return this.readServers(org, await this.snapshot(org));
  }

  /** Reads only the servers that changed since the known ones were read: an org may have 16 MiB of offers. */
  private async readServers(org: OrgId, known: ServerSnapshot | undefined): Promise<RegisteredServer[]> {
    const before = new Map(known?.servers.map((server) => [server.row.id, server]));
    const all = await this.store.revisions(org);
    const changed = all.filter(({ id, revision }) => before.get(id)?.row.revision !== revision);
    const rows = await this.store.findByIds(changed.map(({ id }) => id));
    const read = await eachInTurns(rows, (row) => serverOf(row));
    for (const { id } of changed) before.delete(id);
    for (const server of read) before.set(server.row.id, server);
    return all.flatMap(({ id }) => before.get(id) ?? []);
  }

  /** Returns the servers as the caller sees them. */
  async snapshotFor(ctx: CallContext): Promise<ServerSnapshot> {
    const shared = await this.snapshot(ctx.org.id);
    if (!shared.isPersonal) return shared;
    const credentials = await this.users.given(ctx);
    const known = this.personal.get(credentials);
    if (known?.shared === shared) return known.snapshot;
    const servers = shared.servers.map((server) => this.users.seenWith(credentials, server));
    const snapshot = { ...shared, servers, quarantined: quarantinedIn(servers) };
    this.personal.set(credentials, { shared, snapshot });
    return snapshot;
  }

  /** Returns the same without a promise, when the cache is fresh. */
  peekFor(ctx: CallContext): ServerSnapshot | undefined {
    const shared = this.snapshots.peek(ctx.org.id);
    if (!shared?.isPersonal) return shared;
    const credentials = this.users.peekGiven(ctx);
    const known = credentials && this.personal.get(credentials);
    return known?.shared === shared ? known.snapshot : undefined;
  }

  /**
   * Returns one server as the caller sees it, and the caller's connection, if there is one.
   * @param server the server as callers without credentials see it.
   */
  async seen(
    ctx: CallContext,
    server: RegisteredServer,
  ): Promise<{ server: RegisteredServer; connection?: UpstreamConnection }> {
    const seen = this.users.seenWith(await this.users.given(ctx), server);
    return { server: seen, connection: this.pool.lineTo(server.row, await this.users.credentialFor(ctx, server.row)) };
  }

  mayDiscover(ctx: CallContext, serverId: string): Promise<boolean> {
    const resource = { type: 'McpServer', id: serverId } as const;
    return this.verbs.permits({ ctx, verb: serverId, action: 'mcp_discover', resource });
  }

  @OnNotice('upstream.changed')
  expireSnapshot({ orgId }: Notice<'upstream.changed'>): void {
    this.snapshots.expire(orgId);
    void this.closeOutdated(orgId);
  }

  /** Closes connections to deleted servers. After a failure, the idle check closes them later. */
  private async closeOutdated(org: string): Promise<void> {
    const { servers } = await this.snapshot(org).catch(() => ({ servers: undefined }));
    if (servers) this.pool.keepOnly(org, new Map(servers.map(({ row }) => [row.id, row])));
  }
}

function quarantinedIn(servers: readonly RegisteredServer[]): ReadonlySet<string> {
  const quarantined = servers.flatMap(({ tools }) => tools.filter(({ quarantine }) => quarantine));
  return new Set(quarantined.map(({ canonical }) => canonical));
}
