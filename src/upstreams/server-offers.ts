import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { AuditService } from '../audit/audit.service.js';
import { systemClock } from '../kernel/clock.js';
import { storableText } from '../kernel/json.js';
import { writeRowsIn } from '../platform/database/row-writer.js';
import { TxRunner, type Tx } from '../platform/database/tx.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { approve, judge } from './tool-pins.js';
import type { UserCredential } from './upstream-places.js';
import type { Addressed } from './upstream-pool.js';
import { UpstreamStore } from './upstream.store.js';
import type { ApproveTools, Offer, ToolPin } from './upstream.types.js';
import { UserCredentialStore } from './user-credential.store.js';

/** An event of the audit names so many. */
const maxNamed = 50;

type Place = Pick<McpServerEntity, 'id' | 'orgId'>;

/** Writes what servers have: whoever writes it holds back the tools whose definitions nobody approved, and says so in the same commit. */
@Injectable()
export class ServerOffers {
  constructor(
    private readonly store: UpstreamStore,
    private readonly users: UserCredentialStore,
    private readonly txs: TxRunner,
    private readonly audit: AuditService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** The row as it is now. Throws as UpstreamStore.update does. */
  async change(tx: Tx, place: Place, change: Partial<McpServerEntity>): Promise<McpServerEntity> {
    const before = await this.store.locked(tx, place);
    const { toolChanges = before.toolChanges, offer = before.offer } = change;
    const { found, ...pins } = judge({ ...before, toolChanges }, offer.tools, now());
    const stored = await this.store.update(tx, before, { ...change, ...pins });
    await this.report(tx, stored, found);
    return stored;
  }

  /** What a server has now, unless it is elsewhere since somebody asked it. False when nothing is new. Throws as `change` does. */
  keep({ id, orgId, url, program }: Addressed, offer: Offer): Promise<boolean> {
    return this.txs.run(async (tx) => {
      const row = await this.store.locked(tx, { id, orgId });
      if (row.url !== url || !isDeepStrictEqual(row.program, program)) return false;
      // During an update of the gateway a process of the version before may have written it, and judged nothing.
      const isJudged = judge(row, offer.tools, now()).found.length === 0;
      if (isJudged && JSON.stringify(row.offer) === JSON.stringify(offer)) return false;
      await this.change(tx, row, { offer });
      return true;
    });
  }

  /**
   * What a server has now for a user, judged by what it had when the credential was given. False when nothing is new, the credential is
   * another, or it is more than can be kept.
   */
  keepFor({ id, caller }: UserCredential, offer: Offer): Promise<boolean> {
    return this.txs.run(async (tx) => {
      const held = this.users.fits(offer) ? await this.users.locked(tx, id) : undefined;
      if (!held || JSON.stringify(held.kept.offer) === JSON.stringify(offer)) return false;
      const { kept, server } = held;
      const { found, ...pins } = judge({ ...server, ...kept }, offer.tools, now());
      await this.users.keepOffer(tx, id, { offer, ...pins });
      await this.report(tx, server, found, { caller });
      return true;
    });
  }

  /** Throws as `approve` of the pins does, and `not_found`. */
  async approve(tx: Tx, place: Place, wanted: ApproveTools['tools']): Promise<McpServerEntity> {
    const row = await this.store.locked(tx, place);
    const { approved, ...pins } = approve(row, wanted);
    if (approved.length === 0) return row;
    const facts = { server: row.serverId, ...named(approved) };
    await writeRowsIn(tx, this.audit.rowsOf(row.orgId, 'mcp.tools-approved', facts));
    return this.store.update(tx, row, pins);
  }

  private async report(
    tx: Tx,
    { orgId, serverId }: McpServerEntity,
    found: readonly ToolPin[],
    whose: { caller?: string } = {},
  ): Promise<void> {
    if (found.length === 0) return;
    const facts = { server: serverId, ...whose, ...named(found) };
    await writeRowsIn(tx, this.audit.rowsOf(orgId, 'mcp.tools-changed', facts));
    tx.afterCommit(() => this.log.warn(facts, 'an MCP server changed its tools'));
  }
}

/** A name is whatever the server says: the audit keeps what can be kept of it. */
function named(all: readonly ToolPin[]) {
  const tools = all.slice(0, maxNamed).map((tool) => ({ ...tool, name: storableText(tool.name, 256) }));
  return { count: all.length, tools };
}

function now(): string {
  return new Date(systemClock.now()).toISOString();
}
