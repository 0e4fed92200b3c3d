import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { newId, type OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';
import type { Addressed } from '../connections/upstream-pool.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { SealedEndpoints, type Endpoint, type UserCredential } from '../storage/sealed-endpoints.js';
import { UpstreamStore } from '../storage/upstream.store.js';
import type { ApproveTools, FoundOffer } from '../upstream.types.js';
import { ServerOffers, type Kept } from './server-offers.js';

/** Changes the rows of MCP servers, and notifies all processes after the commit. */
@Injectable()
export class ServerChanges {
  constructor(
    private readonly store: UpstreamStore,
    private readonly endpoints: SealedEndpoints,
    private readonly offers: ServerOffers,
    private readonly notices: Notices,
  ) {}

  /** Throws `slug_taken` when the org has a server with this id, so that no connection is opened in vain. */
  requireFree(server: Pick<McpServerEntity, 'orgId' | 'serverId'>): Promise<void> {
    return this.store.requireFree(server);
  }

  /** Adds a server. Throws as UpstreamStore.insert does. */
  async add(tx: Tx, orgId: OrgId, server: Partial<McpServerEntity>, endpoint: Endpoint): Promise<McpServerEntity> {
    const place = { id: newId(), orgId };
    const columns = this.endpoints.columnsOf(place, endpoint);
    const stored = await this.store.insert(tx, { ...place, ...server, ...columns });
    this.tellChanged(tx, stored);
    return stored;
  }

  /** Returns whether the stored endpoint is another one, or cannot be decrypted. */
  isMoved(row: McpServerEntity, endpoint: Endpoint): boolean {
    try {
      return !isDeepStrictEqual(this.endpoints.endpointOf(row), endpoint);
    } catch {
      return true;
    }
  }

  /**
   * Changes a server, judges its tools and returns the new row. Throws as UpstreamStore.update does.
   * @param endpoint the new endpoint; absent when it stays.
   */
  async change(
    tx: Tx,
    row: McpServerEntity,
    change: Partial<McpServerEntity>,
    endpoint?: Endpoint,
  ): Promise<McpServerEntity> {
    const columns = endpoint && this.endpoints.columnsOf(row, endpoint);
    const stored = await this.offers.change(tx, row, { ...change, ...columns });
    this.tellChanged(tx, stored);
    return stored;
  }

  /** Ends the quarantine of tools and returns the new row. Throws as ServerOffers.approve does. */
  async approve(tx: Tx, row: McpServerEntity, wanted: ApproveTools['tools']): Promise<McpServerEntity> {
    const stored = await this.offers.approve(tx, row, wanted);
    this.tellChanged(tx, stored);
    return stored;
  }

  /** Removes a server with its tools. Returns false when it is gone already. */
  async remove(tx: Tx, row: McpServerEntity): Promise<boolean> {
    if (!(await this.store.delete(tx, row.id))) return false;
    this.tellChanged(tx, row);
    return true;
  }

  /**
   * Stores an offer that was read from a server, for all callers or for one user. Throws as ServerOffers.storeOffer and
   * ServerOffers.keepFor do.
   */
  async keepOffer(server: Addressed, user: UserCredential | undefined, found: FoundOffer): Promise<Kept> {
    const kept = user ? await this.offers.keepFor(user, found) : await this.offers.storeOffer(server, found);
    const { orgId, id: serverId } = server;
    if (kept.isNew && user)
      this.notices.tell(undefined, 'upstream.offer-changed', { orgId, serverId, caller: user.caller });
    else if (kept.isNew) this.tellChanged(undefined, server);
    return kept;
  }

  /** Notifies all processes: they read the servers again and close outdated connections. */
  private tellChanged(tx: Tx | undefined, { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>): void {
    this.notices.tell(tx, 'upstream.changed', { orgId, serverId: id });
  }
}
