import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { OrgId } from '../kernel/ids.js';
import type { Notice } from '../kernel/notices.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { Notices } from '../platform/bus/notices.js';
import { OnNotice } from '../platform/bus/on-notice.decorator.js';
import type { Tx } from '../platform/database/tx.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { serverOf } from './registered-server.js';
import type { RegisteredServer } from './registered-server.types.js';
import { UpstreamPool, type Addressed } from './upstream-pool.js';
import { UpstreamStore } from './upstream.store.js';

const unreadAtOnce = 50;

/** All MCP servers of an org, for everyone who reads them on every request. */
export interface ServerSnapshot {
  readonly version: string;
  /** In order of their ids. */
  readonly servers: readonly RegisteredServer[];
}

/** Which MCP servers an org has, and what they have. */
@Injectable()
export class UpstreamsService implements OnModuleInit {
  private readonly snapshots = new SnapshotCache<ServerSnapshot>({
    probe: (org) => this.store.version(org),
    load: async (org, version) => ({ version, servers: (await this.store.findAll(org as OrgId)).map(serverOf) }),
  });

  constructor(
    private readonly store: UpstreamStore,
    private readonly pool: UpstreamPool,
    private readonly verbs: VerbBus,
    private readonly notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    this.pool.onChanged((server) => void this.sync(server));
  }

  snapshot(org: string): Promise<ServerSnapshot> {
    return this.snapshots.get(org);
  }

  /** The snapshot when it is fresh, without a promise. */
  peekSnapshot(org: string): ServerSnapshot | undefined {
    return this.snapshots.peek(org);
  }

  mayDiscover(ctx: CallContext, serverId: string): Promise<boolean> {
    const resource = { type: 'McpServer', id: serverId } as const;
    return this.verbs.permits({ ctx, verb: serverId, action: 'mcp_discover', resource });
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

  /** Asks servers what they have that never said it. */
  async readUnread(): Promise<void> {
    try {
      await Promise.all((await this.store.findUnread(unreadAtOnce)).map((server) => this.sync(server)));
    } catch (err) {
      this.log.warn({ err }, 'declared MCP servers are asked later');
    }
  }

  /** Reads what a server has now, and keeps it. */
  private async sync(server: Addressed): Promise<void> {
    try {
      const offer = await this.pool.to(server).main.offer();
      if (await this.store.keepOffer(server, offer)) this.tellChanged(undefined, server);
    } catch (err) {
      // A line that rests after a failure has told of it.
      const level = RialtoError.from(err).code === 'unavailable' ? 'debug' : 'warn';
      this.log[level]({ err, server: server.serverId }, 'what an MCP server has could not be read');
    }
  }

  private async tidy(org: string): Promise<void> {
    try {
      const { servers } = await this.snapshot(org);
      this.pool.keepOnly(org, new Map(servers.map(({ row }) => [row.id, row])));
    } catch (err) {
      this.log.debug({ err }, 'lines to MCP servers are looked over later');
    }
  }
}
