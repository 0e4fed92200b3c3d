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
import { requireFit, UserCredentialStore } from '../storage/user-credential.store.js';

/** Maximum number of tools that one audit event names. */
const maxNamed = 50;

type Place = Pick<McpServerEntity, 'id' | 'orgId'>;

/** Result of storing the offer that was read from a server. */
export interface Kept {
  readonly isNew: boolean;
  /** Whether some tools differ from the approved ones. The audit records those tools. */
  readonly hasOtherTools: boolean;
}

const nothingNew: Kept = { isNew: false, hasOtherTools: false };

/**
 * Stores the offers of MCP servers. Each write puts tools with unapproved definitions into quarantine, and records them
 * in the audit in the same transaction.
 */
@Injectable()
export class ServerOffers {
  constructor(
    private readonly store: UpstreamStore,
    private readonly users: UserCredentialStore,
    private readonly txs: TxRunner,
    private readonly audit: AuditService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Applies a change and returns the new row. Throws as UpstreamStore.update does. */
  async change(tx: Tx, place: Place, change: Partial<McpServerEntity>): Promise<McpServerEntity> {
    return (await this.writeOffer(tx, place, change)).stored;
  }

  private async writeOffer(tx: Tx, place: Place, change: Partial<McpServerEntity>) {
    const before = await this.store.findLocked(tx, place);
    const { toolChanges = before.toolChanges, offer = before.offer } = change;
    const { found, ...pins } = judge({ ...before, toolChanges }, offer.tools, now());
    const stored = await this.store.update(tx, before, { ...change, ...pins });
    await this.reportQuarantined(tx, stored, found);
    return { stored, found };
  }

  /** Stores what the server offers, unless its address changed after the offer was read. Throws as `change` does. */
  storeOffer({ id, orgId, url, program }: Addressed, found: FoundOffer): Promise<Kept> {
    return this.txs.run(async (tx) => {
      const row = await this.store.findLocked(tx, { id, orgId });
      if (row.url !== url || !isDeepStrictEqual(row.program, program)) return nothingNew;
      const offer = completed(found, row.offer);
      // During a rolling update, a process of the previous version may have stored the offer without judging its tools.
      const isJudged = judge(row, offer.tools, now()).found.length === 0;
      if (isJudged && JSON.stringify(row.offer) === JSON.stringify(offer)) return nothingNew;
      const { found: changed } = await this.writeOffer(tx, row, { offer });
      return { isNew: true, hasOtherTools: changed.length > 0 };
    });
  }

  /**
   * Stores what the server offers to one user, judged against the offer of that user's first credential. Stores nothing
   * when the credential was replaced. Throws `unprocessable` when the offer is too large to store.
   */
  keepFor({ id, caller }: UserCredential, found: FoundOffer): Promise<Kept> {
    return this.txs.run(async (tx) => {
      const credential = await this.users.findLocked(tx, { id });
      if (!credential) return nothingNew;
      const { stored, server } = credential;
      const offer = completed(found, stored.offer);
      requireFit(offer);
      if (JSON.stringify(stored.offer) === JSON.stringify(offer)) return nothingNew;
      const { found: changed, ...pins } = judge({ ...server, ...stored }, offer.tools, now());
      await this.users.keepOffer(tx, id, { offer, ...pins });
      await this.reportQuarantined(tx, server, changed, { caller });
      return { isNew: true, hasOtherTools: changed.length > 0 };
    });
  }

  /**
   * Returns the approved and the quarantined tools for a caller who sets a credential. With the first credential, all
   * offered tools are approved. With a later one, the tools of the former offer are approved, even when the former
   * credential was withdrawn meanwhile.
   */
  async pinsFor(tx: Tx, owner: { server: string; caller: string }, offer: Offer): Promise<Pins> {
    const former = await this.users.findLocked(tx, owner);
    if (!former) return { approvedTools: [], quarantinedTools: [] };
    const { stored, server } = former;
    const { found, ...pins } = judge({ ...server, ...stored }, offer.tools, now());
    await this.reportQuarantined(tx, server, found, { caller: owner.caller });
    return pins;
  }

  /**
   * Approves tools offered for one credential and returns its caller. Throws `not_found` for an unknown credential, and
   * as `approve` of the pins does.
   */
  async approveFor(tx: Tx, place: Place, id: string, wanted: ApproveTools['tools']): Promise<string> {
    const { stored, server } = (await this.users.findLocked(tx, { id })) ?? {};
    if (!stored || server?.id !== place.id) throw new RialtoError('not_found', { message: 'no such credential' });
    const { approved, ...pins } = approve({ ...server, ...stored }, wanted);
    const { offer, caller } = stored;
    if (approved.length > 0) await this.users.keepOffer(tx, id, { offer, ...pins });
    await this.reportApproved(tx, server, approved, { caller });
    return caller;
  }

  /** Approves tools of a server. Throws `not_found`, and as `approve` of the pins does. */
  async approve(tx: Tx, place: Place, wanted: ApproveTools['tools']): Promise<McpServerEntity> {
    const row = await this.store.findLocked(tx, place);
    const { approved, ...pins } = approve(row, wanted);
    if (approved.length === 0) return row;
    await this.reportApproved(tx, row, approved);
    return this.store.update(tx, row, pins);
  }

  private async reportApproved(
    tx: Tx,
    { orgId, serverId }: McpServerEntity,
    approved: readonly ToolPin[],
    owner: { caller?: string } = {},
  ): Promise<void> {
    if (approved.length === 0) return;
    const facts = { server: serverId, ...named(approved) };
    await writeRowsIn(tx, await this.audit.sealedRowsOf(orgId, 'mcp.tools-approved', facts, personalOf(owner), tx));
  }

  private async reportQuarantined(
    tx: Tx,
    { orgId, serverId }: McpServerEntity,
    found: readonly ToolPin[],
    owner: { caller?: string } = {},
  ): Promise<void> {
    if (found.length === 0) return;
    const facts = { server: serverId, ...named(found) };
    await writeRowsIn(tx, await this.audit.sealedRowsOf(orgId, 'mcp.tools-changed', facts, personalOf(owner), tx));
    tx.afterCommit(() => this.log.warn({ ...facts, ...owner }, 'an MCP server changed its tools'));
  }
}

/** The owner of a credential is a caller, which an erasure removes from the audit. */
function personalOf({ caller }: { caller?: string }) {
  return caller === undefined ? [] : [{ subject: caller, facts: { caller: storableText(caller, 300) } }];
}

/** A server may use any text as a name; `storableText` keeps the part that the audit can store. */
function named(all: readonly ToolPin[]) {
  const tools = all.slice(0, maxNamed).map((tool) => ({ ...tool, name: storableText(tool.name, 256) }));
  return { count: all.length, tools };
}

function now(): string {
  return new Date(systemClock.now()).toISOString();
}
