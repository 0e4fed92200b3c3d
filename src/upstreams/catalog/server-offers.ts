import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { AuditService } from '../../audit/audit.service.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { storableText } from '../../kernel/json.js';
import { writeRowsIn } from '../../platform/database/row-writer.js';
import { TxRunner, type Tx } from '../../platform/database/tx.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { McpServerEntity } from '../storage/mcp-server.entity.js';
import { completed } from '../storage/offer.js';
import { approve, judge, type Pins } from '../storage/tool-pins.js';
import type { UserCredential } from '../storage/sealed-endpoints.js';
import type { Addressed } from '../connections/upstream-pool.js';
import { UpstreamStore } from '../storage/upstream.store.js';
import type { ApproveTools, FoundOffer, Offer, ToolPin } from '../upstream.types.js';
import { UserCredentialStore } from '../storage/user-credential.store.js';

/** An event of the audit names so many. */
const maxNamed = 50;

type Place = Pick<McpServerEntity, 'id' | 'orgId'>;

/** What came of a look. */
export interface Kept {
  readonly isNew: boolean;
  /** Than those that are approved: the audit tells of it. */
  readonly hasOtherTools: boolean;
}

const nothingNew: Kept = { isNew: false, hasOtherTools: false };

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
    return (await this.write(tx, place, change)).stored;
  }

  private async write(tx: Tx, place: Place, change: Partial<McpServerEntity>) {
    const before = await this.store.locked(tx, place);
    const { toolChanges = before.toolChanges, offer = before.offer } = change;
    const { found, ...pins } = judge({ ...before, toolChanges }, offer.tools, now());
    const stored = await this.store.update(tx, before, { ...change, ...pins });
    await this.report(tx, stored, found);
    return { stored, found };
  }

  /** What a server has now, unless it is elsewhere since somebody asked it. Throws as `change` does. */
  keep({ id, orgId, url, program }: Addressed, found: FoundOffer): Promise<Kept> {
    return this.txs.run(async (tx) => {
      const row = await this.store.locked(tx, { id, orgId });
      if (row.url !== url || !isDeepStrictEqual(row.program, program)) return nothingNew;
      const offer = completed(found, row.offer);
      // During an update of the gateway a process of the version before may have written it, and judged nothing.
      const isJudged = judge(row, offer.tools, now()).found.length === 0;
      if (isJudged && JSON.stringify(row.offer) === JSON.stringify(offer)) return nothingNew;
      const { found: others } = await this.write(tx, row, { offer });
      return { isNew: true, hasOtherTools: others.length > 0 };
    });
  }

  /**
   * What a server has now for a user, judged by what it had when the first credential was given; nothing where the credential is
   * another. Throws `unprocessable` for more than can be kept.
   */
  keepFor({ id, caller }: UserCredential, found: FoundOffer): Promise<Kept> {
    return this.txs.run(async (tx) => {
      const held = await this.users.locked(tx, { id });
      if (!held) return nothingNew;
      const { kept, server } = held;
      const offer = completed(found, kept.offer);
      this.users.requireFit(offer);
      if (JSON.stringify(kept.offer) === JSON.stringify(offer)) return nothingNew;
      const { found: others, ...pins } = judge({ ...server, ...kept }, offer.tools, now());
      await this.users.keepOffer(tx, id, { offer, ...pins });
      await this.report(tx, server, others, { caller });
      return { isNew: true, hasOtherTools: others.length > 0 };
    });
  }

  /**
   * What is approved and what waits for a caller who gives a credential: of the first all that it is offered is approved, of a later one
   * what was offered before, also when that was taken back meanwhile.
   */
  async pinsFor(tx: Tx, whose: { server: string; caller: string }, offer: Offer): Promise<Pins> {
    const former = await this.users.locked(tx, whose);
    if (!former) return { approvedTools: [], quarantinedTools: [] };
    const { kept, server } = former;
    const { found, ...pins } = judge({ ...server, ...kept }, offer.tools, now());
    await this.report(tx, server, found, { caller: whose.caller });
    return pins;
  }

  /** Of what is offered for one credential: whose it is. Throws as `approve` does. */
  async approveFor(tx: Tx, place: Place, id: string, wanted: ApproveTools['tools']): Promise<string> {
    const { kept, server } = (await this.users.locked(tx, { id })) ?? {};
    if (!kept || server?.id !== place.id) throw new RialtoError('not_found', { message: 'no such credential' });
    const { approved, ...pins } = approve({ ...server, ...kept }, wanted);
    const { offer, caller } = kept;
    if (approved.length > 0) await this.users.keepOffer(tx, id, { offer, ...pins });
    await this.reportApproved(tx, server, approved, { caller });
    return caller;
  }

  /** Throws as `approve` of the pins does, and `not_found`. */
  async approve(tx: Tx, place: Place, wanted: ApproveTools['tools']): Promise<McpServerEntity> {
    const row = await this.store.locked(tx, place);
    const { approved, ...pins } = approve(row, wanted);
    if (approved.length === 0) return row;
    await this.reportApproved(tx, row, approved);
    return this.store.update(tx, row, pins);
  }

  private async reportApproved(
    tx: Tx,
    { orgId, serverId }: McpServerEntity,
    approved: readonly ToolPin[],
    whose: { caller?: string } = {},
  ): Promise<void> {
    if (approved.length === 0) return;
    const facts = { server: serverId, ...whose, ...named(approved) };
    await writeRowsIn(tx, this.audit.rowsOf(orgId, 'mcp.tools-approved', facts));
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
