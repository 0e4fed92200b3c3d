import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { OrgId } from '../kernel/ids.js';
import type { Notice } from '../kernel/notices.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { Notices } from '../platform/bus/notices.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import type { Tx } from '../platform/database/tx.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import type { McpServerEntity } from './storage/mcp-server.entity.js';
import { serverOf } from './storage/registered-server.js';
import { ServerOffers } from './catalog/server-offers.js';
import type { RegisteredServer } from './registered-server.types.js';
import type { UpstreamConnection } from './connections/upstream-connection.js';
import { UpstreamPool } from './connections/upstream-pool.js';
import { UserCredentials, type OwnCredentials } from './credentials/user-credentials.js';
import { UpstreamStore } from './storage/upstream.store.js';
import type { ApproveTools } from './upstream.types.js';

/** All MCP servers of an org, for everyone who reads them on every request. */
export interface ServerSnapshot {
  readonly version: string;
  /** In order of their ids. */
  readonly servers: readonly RegisteredServer[];
  /** Tools that nobody may call, by their canonical names. */
  readonly quarantined: ReadonlySet<string>;
  /** Whether some of them have for each caller something else. */
  readonly isPersonal: boolean;
}

/** Which MCP servers an org has, and what they have. */
@Injectable()
export class UpstreamsService {
  private readonly snapshots = new SnapshotCache<ServerSnapshot>({
    probe: (org) => this.store.version(org),
    load: async (org, version) => {
      const servers = (await this.store.findAll(org as OrgId)).map((row) => serverOf(row));
      const isPersonal = servers.some(({ row }) => row.userCredentials !== 'none');
      return { version, servers, quarantined: heldIn(servers), isPersonal };
    },
  });
  /** By what their caller has given. */
  private readonly personal = new WeakMap<OwnCredentials, { shared: ServerSnapshot; snapshot: ServerSnapshot }>();

  constructor(
    private readonly store: UpstreamStore,
    private readonly offers: ServerOffers,
    private readonly pool: UpstreamPool,
    private readonly users: UserCredentials,
    private readonly verbs: VerbBus,
    private readonly notices: Notices,
  ) {}

  /** As all see them who have given no credential. */
  snapshot(org: string): Promise<ServerSnapshot> {
    return this.snapshots.get(org);
  }

  /** As the caller sees them. */
  async snapshotFor(ctx: CallContext): Promise<ServerSnapshot> {
    const shared = await this.snapshot(ctx.org.id);
    if (!shared.isPersonal) return shared;
    const given = await this.users.given(ctx);
    const known = this.personal.get(given);
    if (known?.shared === shared) return known.snapshot;
    const servers = shared.servers.map((server) => this.users.seenWith(given, server));
    const snapshot = { ...shared, servers, quarantined: heldIn(servers) };
    this.personal.set(given, { shared, snapshot });
    return snapshot;
  }

  /** The same when it is fresh, without a promise. */
  peekFor(ctx: CallContext): ServerSnapshot | undefined {
    const shared = this.snapshots.peek(ctx.org.id);
    if (!shared?.isPersonal) return shared;
    const given = this.users.peekGiven(ctx);
    const known = given && this.personal.get(given);
    return known?.shared === shared ? known.snapshot : undefined;
  }

  /** One server as the caller sees it, and the line of the caller's calls, if there is one. */
  async seen(ctx: CallContext, row: McpServerEntity): Promise<{ server: RegisteredServer; line?: UpstreamConnection }> {
    const server = this.users.seenWith(await this.users.given(ctx), serverOf(row));
    return { server, line: this.pool.lineTo(row, await this.users.of(ctx, row)) };
  }

  mayDiscover(ctx: CallContext, serverId: string): Promise<boolean> {
    const resource = { type: 'McpServer', id: serverId } as const;
    return this.verbs.permits({ ctx, verb: serverId, action: 'mcp_discover', resource });
  }

  /** Writes a change of a server, and judges its tools. The row as it is now. Throws as UpstreamStore.update does. */
  async change(tx: Tx, row: McpServerEntity, change: Partial<McpServerEntity>): Promise<McpServerEntity> {
    const stored = await this.offers.change(tx, row, change);
    this.tellChanged(tx, stored);
    return stored;
  }

  /** Ends the quarantine of tools. The row as it is now. Throws as ServerOffers.approve does. */
  async approve(tx: Tx, row: McpServerEntity, wanted: ApproveTools['tools']): Promise<McpServerEntity> {
    const stored = await this.offers.approve(tx, row, wanted);
    this.tellChanged(tx, stored);
    return stored;
  }

  /** Whoever lists tools, or has a line to the server, looks again after the commit. */
  tellChanged(tx: Tx | undefined, { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>): void {
    this.notices.tell(tx, 'upstream.changed', { orgId, serverId: id });
  }

  @OnNotice('upstream.changed')
  forget({ orgId }: Notice<'upstream.changed'>): void {
    this.snapshots.expire(orgId);
    void this.tidy(orgId);
  }

  /** Ends lines to what is no longer there; where that fails, they end when nobody uses them. */
  private async tidy(org: string): Promise<void> {
    const { servers } = await this.snapshot(org).catch(() => ({ servers: undefined }));
    if (servers) this.pool.keepOnly(org, new Map(servers.map(({ row }) => [row.id, row])));
  }
}

function heldIn(servers: readonly RegisteredServer[]): ReadonlySet<string> {
  const held = servers.flatMap(({ tools }) => tools.filter(({ quarantine }) => quarantine));
  return new Set(held.map(({ canonical }) => canonical));
}
