import { Inject, Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import { AuditService } from '../../audit/audit.service.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { AgentId } from '../../kernel/ids.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import type { Tx } from '../../platform/database/tx.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { AgentStore, failingCalls, secondsFromNow, type AgentChange } from '../agents/agent.store.js';
import { seenSince } from '../agents/agent-view.js';
import { changesOf, isTrustChanged } from './card-changes.js';
import type { FetchedCard } from './card-fetcher.js';
import { CardLooks, type CardLook } from './card-looks.js';
import {
  approvalHash,
  approvalRefusal,
  changeHash,
  decideTrust,
  type SignatureMode,
  type TrustDecision,
} from '../cards/card-trust.js';
import { nextHealth, refreshDelay, type Attempt } from '../agents/health.js';

/** One check of an agent's card: the new card, or why there is none. */
export interface RefreshAttempt extends CardLook {
  readonly row: AgentEntity;
}

type Taken = Extract<TrustDecision, { action: 'take' }>;

/** Checks a card again and stores the result: card, changes, trust, health and the time of the next refresh. */
@Injectable()
export class CardRefresher {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly agents: AgentStore,
    private readonly looks: CardLooks,
    private readonly audit: AuditService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Checks the card. Failures of the agent are a result, not an error; `storeAttempt` turns them into its health. */
  async checkCard(row: AgentEntity, signal?: AbortSignal): Promise<RefreshAttempt> {
    return { row, ...(await this.looks.recheck(row, signal)) };
  }

  /**
   * Stores an attempt. Publishes it only when readers can see a difference. Throws `not_found` when the agent was
   * removed in the meantime.
   */
  async storeAttempt(tx: Tx, attempt: RefreshAttempt, byHand: boolean): Promise<AgentEntity> {
    // An approval may have replaced the pin since the attempt.
    const row = await this.agents.lockAgent(tx, attempt.row.id);
    if (!row) throw new RialtoError('not_found', { message: 'no such agent' });
    const decision = this.decideOn(row, attempt);
    const checked = await this.withCalls(tx, row, attempt);
    if (decision?.action === 'take') return this.takeCard(tx, row, checked, decision, byHand);
    const isRefused = decision?.action === 'refuse';
    const error = isRefused ? signatureError(decision.reason).message : checked.error;
    const signature = decision?.action === 'keep' ? decision.signature : row.signature;
    const change = this.healthChange(row, isRefused ? 'invalid' : checked.result, error, byHand);
    const visible = change.health !== row.health || isTrustChanged(row.signature, signature);
    return this.writeChange(tx, row, { ...change, signature }, visible);
  }

  /**
   * Ends the quarantine of an agent and pins the key of its card. Throws `conflict` when the card is another one,
   * `unprocessable` when the signature forbids it.
   */
  async approve(tx: Tx, id: AgentId, cardHash: string): Promise<AgentEntity> {
    const row = await this.agents.lockAgent(tx, id);
    if (!row || row.cardHash !== cardHash)
      throw new RialtoError('conflict', {
        message: 'the card of this agent is not the one that you reviewed',
        hint: 'review the current card with GET /api/a2a/agents/{id} and its /changes, then approve its hash',
      });
    const refusal = approvalRefusal(this.mode, row.signature);
    if (refusal !== undefined) throw new RialtoError('unprocessable', { message: refusal });
    const pinnedKey = row.signature === null ? row.pinnedKey : (row.signature.key ?? null);
    return this.writeChange(tx, row, { quarantinedAt: null, pinnedKey }, true);
  }

  /** Returns the columns for a new agent with a fetched card. Throws `card_invalid` when its signatures forbid it. */
  newColumns(look: CardLook) {
    const found = look.found!;
    const prior = { pin: null, signature: null, hasCard: false, isSame: false };
    const decision = decideTrust(this.mode, look.verdict, prior);
    if (decision.action !== 'take') throw signatureError('reason' in decision ? decision.reason : '');
    return {
      ...this.cardColumns(found, decision, {}),
      health: 'healthy' as const,
      failures: 0,
      lastError: null,
      lastFetchedAt: now(),
      quarantinedAt: null,
      lastSeenAt: now(),
      nextRefreshAt: this.nextTime(0),
    };
  }

  private get mode(): SignatureMode {
    return this.settings.RIALTO_CARD_SIGNATURES;
  }

  /**
   * Returns the trust decision; undefined when there is nothing to decide: no card was checked, or the checked card
   * was replaced.
   */
  private decideOn(
    row: AgentEntity,
    { row: before, found, verdict, result }: RefreshAttempt,
  ): TrustDecision | undefined {
    if (verdict === undefined && (this.mode !== 'off' || result !== 'ok')) return undefined;
    if (found === undefined && row.card !== before.card) return undefined;
    const isSame = found === undefined || found.text === row.card;
    const { pinnedKey: pin, signature } = row;
    return decideTrust(this.mode, verdict, { pin, signature, hasCard: row.card !== null, isSame });
  }

  private async takeCard(
    tx: Tx,
    row: AgentEntity,
    { found, result, error }: RefreshAttempt,
    decision: Taken,
    byHand: boolean,
  ): Promise<AgentEntity> {
    const before = row.card === null ? undefined : (parseExact(row.card) as JsonObject);
    const after = found?.raw ?? before!;
    const cardChanged = before === undefined || changeHash(before, this.mode) !== changeHash(after, this.mode);
    const replaced = cardChanged && before !== undefined;
    const trustChanged = isTrustChanged(row.signature, decision.signature);
    const needsApproval = replaced && this.settings.RIALTO_CARD_CHANGES === 'approve';
    const quarantined = needsApproval || (decision.isHeld && (replaced || row.quarantinedAt === null));
    const health = this.healthChange(row, result, error, byHand);
    const change: AgentChange = {
      ...health,
      signature: decision.signature,
      pinnedKey: decision.pin,
      cardHash: approvalHash(after, this.mode, decision.signature),
      ...(found && {
        ...this.cardColumns(found, decision, row.skillsSince),
        ...this.looks.addressOf(row, found),
        name: found.card.name,
      }),
      ...(quarantined && { quarantinedAt: now() }),
    };
    const visible = cardChanged || trustChanged || quarantined || health.health !== row.health;
    const stored = await this.writeChange(tx, row, change, visible);
    if (before && (replaced || (trustChanged && row.signature !== null))) {
      const { signature } = decision;
      const changes = changesOf(this.mode, { card: before, signature: row.signature }, { card: after, signature });
      if (changes.length > 0) await this.agents.addChange(tx, row, stored.cardHash!, changes);
    }
    if (quarantined) tx.afterCommit(() => this.tellQuarantine(stored, decision.isHeld));
    return stored;
  }

  /**
   * Returns the attempt with the result `failing` when the calls of the agent fail: a valid card alone does not make
   * it healthy.
   */
  private async withCalls(tx: Tx, row: AgentEntity, attempt: RefreshAttempt): Promise<RefreshAttempt> {
    if (attempt.result !== 'ok' || !(await this.agents.areCallsFailing(tx, row))) return attempt;
    return {
      ...attempt,
      result: 'failing',
      error: `the last ${failingCalls} calls to the agent failed, although its card is available`,
    };
  }

  private healthChange(row: AgentEntity, result: Attempt, error: string | undefined, byHand: boolean) {
    const state = nextHealth(row, result, byHand);
    return {
      ...state,
      lastError: error ?? null,
      leaseUntil: null,
      nextRefreshAt: this.nextTime(state.failures),
      ...(state.failures === 0 && { lastFetchedAt: now(), lastSeenAt: now() }),
    };
  }

  private cardColumns(found: FetchedCard, { signature, pin }: Taken, since: Readonly<Record<string, number>>) {
    return {
      card: found.text,
      cardHash: approvalHash(found.raw, this.mode, signature),
      etag: found.etag,
      skillsSince: seenSince(since, found.card, systemClock.now()),
      signature,
      pinnedKey: pin,
    };
  }

  private async writeChange(tx: Tx, row: AgentEntity, change: AgentChange, visible: boolean): Promise<AgentEntity> {
    const stored = (await this.agents.update(tx, row.id, change, visible))!;
    if (stored.health !== row.health || (row.failures === 0 && stored.failures > 0))
      tx.afterCommit(() => this.logHealth(row, stored));
    return stored;
  }

  private logHealth(before: AgentEntity, { id, slug, health, failures, lastError }: AgentEntity): void {
    const facts = {
      agent: slug,
      agentId: id,
      health,
      before: before.health,
      failures,
      ...(lastError && { error: lastError }),
    };
    if (health === 'healthy') this.log.info(facts, 'an agent is healthy');
    else if (failures === 0) this.log.warn(facts, 'the calls of an agent fail');
    else this.log.warn(facts, 'the card of an agent cannot be fetched or used');
  }

  private tellQuarantine({ id, orgId, slug, cardHash }: AgentEntity, isHeld: boolean): void {
    const reason = isHeld ? 'signature_changed' : 'tool_changed';
    this.audit
      .note(orgId, 'agent.quarantined', { agent: slug, agentCardId: id, cardHash, reason })
      .catch((err: unknown) => this.log.error({ err, agent: slug }, 'a quarantine could not be recorded in the audit'));
  }

  private nextTime(failures: number): () => string {
    return secondsFromNow(refreshDelay(failures, this.settings.RIALTO_CARD_REFRESH_SECONDS, Math.random()));
  }
}

function signatureError(reason: string): RialtoError {
  const message = `the card is refused for its signature: ${storableText(reason, 500)}`;
  return new RialtoError('card_invalid', { message, data: { upstreamStatus: 200, signature: reason } });
}

function now(): Date {
  return new Date(systemClock.now());
}
