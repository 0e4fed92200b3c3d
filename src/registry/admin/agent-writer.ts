import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type AgentId, type OrgId } from '../../kernel/ids.js';
import { isUniqueViolation } from '../../platform/database/pg.js';
import type { Tx } from '../../platform/database/tx.js';
import { slugOf } from '../../protocol/mcp/tool-names.js';
import { AgentCredentials } from '../agent-credentials.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { AgentStore, secondsFromNow, type AgentChange } from '../agents/agent.store.js';
import { baseUrlOf } from '../refresh/card-fetcher.js';
import type { CardLook } from '../refresh/card-looks.js';
import { CardRefresher } from '../refresh/card-refresher.js';
import type { ChangeAgent, RegisterAgent } from '../registry.types.js';

/** Columns of an agent with a card that was never fetched. */
const unfetched = {
  card: null,
  cardHash: null,
  etag: null,
  signature: null,
  pinnedKey: null,
  skillsSince: {},
  health: 'unknown' as const,
  failures: 0,
  lastError: null,
  quarantinedAt: null,
  lastFetchedAt: null,
  lastSeenAt: null,
};

/** Writes the rows of agents that a caller registers or the configuration declares. */
@Injectable()
export class AgentWriter {
  constructor(
    private readonly store: AgentStore,
    private readonly credentials: AgentCredentials,
    private readonly refresher: CardRefresher,
  ) {}

  /** Inserts an agent that a caller registers, with its card. Throws `card_invalid`, `conflict` or `slug_taken`. */
  insertRegistered(tx: Tx, org: OrgId, input: RegisterAgent, look: CardLook): Promise<AgentEntity> {
    const { cardUrl, card } = look.found!;
    const slug = input.slug ?? slugOf(card.name);
    const columns = { name: card.name, slug, source: 'api', ...this.refresher.newColumns(look) };
    return this.insertRow(tx, org, input, cardUrl, columns);
  }

  /** Inserts an agent of the configuration, reachable or not. A later refresh fetches its card. */
  async insertDeclared(tx: Tx, org: OrgId, input: RegisterAgent): Promise<void> {
    const slug = input.slug ?? slugOf(new URL(baseUrlOf(input.url)).host);
    const columns = { name: slug, slug, source: 'config', ...unfetched, nextRefreshAt: secondsFromNow(0) };
    await this.insertRow(tx, org, input, input.url, columns);
  }

  /** Throws `not_found` when the agent was removed. */
  async change(tx: Tx, row: AgentEntity, { credential, ...plain }: ChangeAgent): Promise<AgentEntity> {
    const sealed = credential === undefined ? {} : this.credentials.sealCredential(row, credential);
    const stored = await this.store.update(tx, row.id, { ...plain, ...sealed }, true);
    if (!stored) throw noSuchAgent();
    return stored;
  }

  /** Writes what differs between a row and its declaration. */
  async alignDeclared(tx: Tx, row: AgentEntity, declared: RegisterAgent): Promise<void> {
    const { slug = row.slug, trustLevel, timeoutMs = null, credential = null } = declared;
    const isSame = row.slug === slug && row.trustLevel === trustLevel && row.timeoutMs === timeoutMs;
    const hasCredential = isDeepStrictEqual(this.storedCredential(row), credential);
    if (isSame && hasCredential) return;
    const sealed = hasCredential ? {} : this.credentials.sealCredential(row, credential);
    await this.store.update(tx, row.id, { slug, trustLevel, timeoutMs, ...sealed }, true);
  }

  /** Throws `not_found` when the agent was removed. */
  async remove(tx: Tx, row: AgentEntity): Promise<void> {
    if (!(await this.store.delete(tx, row))) throw noSuchAgent();
  }

  private async insertRow(
    tx: Tx,
    org: OrgId,
    input: RegisterAgent,
    address: string,
    columns: AgentChange & { slug: string },
  ): Promise<AgentEntity> {
    const url = baseUrlOf(input.url);
    const id = newId<AgentId>();
    const now = new Date(systemClock.now());
    const row = {
      ...columns,
      id,
      orgId: org,
      url,
      trustLevel: input.trustLevel,
      timeoutMs: input.timeoutMs ?? null,
      ...this.credentials.sealCredential({ id, orgId: org }, input.credential ?? null),
      ...this.credentials.sealAddress({ id, orgId: org }, address),
      createdAt: now,
      updatedAt: now,
    };
    try {
      await this.store.insert(tx, row);
    } catch (error) {
      if (isUniqueViolation(error, 'uq_agent_cards_url'))
        throw new RialtoError('conflict', { message: 'an agent with this URL is already registered', data: { url } });
      if (isUniqueViolation(error, 'uq_agent_cards_slug')) {
        throw new RialtoError('slug_taken', {
          message: `another agent of this org already has the slug "${columns.slug}"`,
          hint: 'set another "slug" in the registration',
          data: { slug: columns.slug },
        });
      }
      throw error;
    }
    return row as unknown as AgentEntity;
  }

  /**
   * Returns the credential of a row, null for none; undefined when it cannot be opened, so that the caller seals it
   * again.
   */
  private storedCredential(row: AgentEntity): unknown {
    try {
      return this.credentials.openCredential(row) ?? null;
    } catch {
      return undefined;
    }
  }
}

export function noSuchAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}
