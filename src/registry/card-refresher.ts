import { Inject, Injectable } from '@nestjs/common';
import { AuditService } from '../audit/audit.service.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { diffCards } from '../protocol/a2a/card.js';
import { Notices } from '../platform/bus/notices.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import type { Tx } from '../platform/database/tx.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { AgentEntity } from './agent.entity.js';
import { AgentStore, secondsFromNow, type AgentChange } from './agent.store.js';
import { seenSince } from './agent-view.js';
import { CardFetcher, type FetchedCard } from './card-fetcher.js';
import { nextHealth, refreshDelay, type Attempt } from './health.js';

/** What one look at an agent's card found; `found` is undefined when the card did not change. */
export interface RefreshAttempt {
  readonly row: AgentEntity;
  readonly result: Attempt;
  readonly found?: FetchedCard;
  readonly error?: string;
}

/** Looks at a card again and takes over what it finds: card, diff, health, next time. */
@Injectable()
export class CardRefresher {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly agents: AgentStore,
    private readonly fetcher: CardFetcher,
    private readonly notices: Notices,
    private readonly audit: AuditService,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Never throws for what the agent does; the outcome is its health. */
  async attempt(row: AgentEntity, signal?: AbortSignal): Promise<RefreshAttempt> {
    try {
      const found =
        row.card === null
          ? await this.fetcher.discover(row.cardUrl, { signal })
          : await this.fetcher.fetch(row.cardUrl, { signal }, row.etag ?? undefined);
      return { row, result: 'ok', found };
    } catch (error) {
      const known = RialtoError.from(error);
      if (known.code !== 'card_invalid' && known.code !== 'url_not_allowed') throw known;
      const answered = typeof known.data?.upstreamStatus === 'number' && known.data.upstreamStatus < 400;
      return { row, result: answered ? 'invalid' : 'unreachable', error: storableText(known.message, 500) };
    }
  }

  /** Writes an attempt. Readers are told only when they can see a difference. Throws `not_found` for an agent removed meanwhile. */
  async store(tx: Tx, { row, result, found, error }: RefreshAttempt, byHand: boolean): Promise<AgentEntity> {
    const state = nextHealth(row, result, byHand);
    const cardChanged = found !== undefined && found.hash !== row.cardHash;
    const replaced = cardChanged && row.card !== null;
    const quarantined = replaced && this.settings.RIALTO_CARD_CHANGES === 'approve';
    const change: AgentChange = {
      ...state,
      lastError: error ?? null,
      leaseUntil: null,
      nextRefreshAt: this.nextTime(state.failures),
      ...(result === 'ok' && { lastFetchedAt: now(), lastSeenAt: now() }),
      ...(found && {
        card: found.text,
        cardHash: found.hash,
        cardUrl: found.cardUrl,
        etag: found.etag,
        skillsSince: seenSince(row.skillsSince, found.card, systemClock.now()),
        name: found.card.name,
      }),
      ...(quarantined && { quarantinedAt: now() }),
    };
    const visible = cardChanged || state.health !== row.health;
    const stored = await this.agents.update(tx, row.id, change, visible);
    if (!stored) throw new RialtoError('not_found', { message: 'no such agent' });
    if (replaced)
      await this.agents.addChange(
        tx,
        row,
        found.hash,
        diffCards(JSON.parse(row.card!) as object, JSON.parse(found.text) as object),
      );
    if (quarantined) tx.afterCommit(() => this.tellQuarantine(row, found));
    if (visible) this.notices.tell(tx, 'agent.card-changed', { orgId: row.orgId, agentId: row.id });
    return stored;
  }

  private tellQuarantine({ id, orgId, slug }: AgentEntity, { hash }: FetchedCard): void {
    this.audit
      .note(orgId, 'agent.quarantined', { agent: slug, agentCardId: id, cardHash: hash, reason: 'tool_changed' })
      .catch((err: unknown) => this.log.error({ err, agent: slug }, 'a quarantine could not be noted in the audit'));
  }

  /** The columns of an agent whose card was just fetched. */
  fresh(found: FetchedCard) {
    return {
      card: found.text,
      cardHash: found.hash,
      etag: found.etag,
      skillsSince: seenSince({}, found.card, systemClock.now()),
      health: 'healthy' as const,
      failures: 0,
      lastError: null,
      lastFetchedAt: now(),
      quarantinedAt: null,
      lastSeenAt: now(),
      nextRefreshAt: this.nextTime(0),
    };
  }

  private nextTime(failures: number): () => string {
    return secondsFromNow(refreshDelay(failures, this.settings.RIALTO_CARD_REFRESH_SECONDS, Math.random()));
  }
}

function now(): Date {
  return new Date(systemClock.now());
}
