import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository, type QueryDeepPartialEntity } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid, newId, type AgentId, type OrgId } from '../../kernel/ids.js';
import type { CardChange } from '../../protocol/a2a/card/card.js';
import { Notices } from '../../platform/bus/notices.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Pg } from '../../platform/database/pg.js';
import { later } from '../../platform/database/sql.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { AgentCardChangeEntity, AgentEntity } from './agent.entity.js';
import type { AgentQuery } from '../registry.types.js';

const leaseMs = 30_000;
const declarationLock = 7_262_914;
/** Bytes of the cards in one page of agents: making an answer of megabytes would hold up other callers. */
const maxPageBytes = 1_048_576;
/** Number of card changes that are stored for each agent. */
export const keptChanges = 50;

/** Number of failed calls in a row that makes an agent degraded. */
export const failingCalls = 5;

/** Columns of an agent, each with a value or a database expression. */
export type AgentChange = QueryDeepPartialEntity<AgentEntity>;

/** Returns a time by the clock of the database, which also decides what is due: clocks of processes differ. */
export function secondsFromNow(seconds: number): () => string {
  return () => later(seconds * 1_000);
}

/** Returns the first items: at least one, and as many as have at most so many bytes together. */
function firstWithin<Item extends { bytes: number }>(most: number, items: readonly Item[]): Item[] {
  let total = 0;
  return items.filter(({ bytes }, index) => (total += bytes) <= most || index === 0);
}

/** Reads and writes the rows of registered agents, and publishes changes that readers can see. */
@Injectable()
export class AgentStore {
  constructor(
    @InjectRepository(AgentEntity) private readonly agents: Repository<AgentEntity>,
    private readonly pg: Pg,
    private readonly notices: Notices,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** Finds an agent of one org by id or slug. */
  find(org: OrgId, idOrSlug: string): Promise<AgentEntity | null> {
    return this.agents.findOneBy(
      isUuid(idOrSlug) ? { orgId: org, id: idOrSlug as AgentId } : { orgId: org, slug: idOrSlug },
    );
  }

  findAll(org: OrgId): Promise<AgentEntity[]> {
    return this.agents.find({ where: { orgId: org }, order: { slug: 'ASC' } });
  }

  /** All agents of an org in order of slug, each with a text that changes when something that readers can see does. */
  stamps(org: OrgId): Promise<{ id: AgentId; stamp: string }[]> {
    return this.pg.rows(
      'agents-stamps',
      `
      select id, updated_at::text as stamp
      from agent_cards
      where org_id = :org
      order by slug`,
      { org },
    );
  }

  /** Returns whether the org has an agent with one of the slugs. */
  async hasAny(org: OrgId, slugs: readonly string[]): Promise<boolean> {
    const rows = await this.pg.rows(
      'agents-with-slugs',
      'select 1 from agent_cards where org_id = :org and slug = any(:slugs::text[]) limit 1',
      { org, slugs },
    );
    return rows.length > 0;
  }

  findByIds(ids: readonly AgentId[]): Promise<AgentEntity[]> {
    return ids.length === 0 ? Promise.resolve([]) : this.agents.findBy({ id: In([...ids]) });
  }

  /**
   * Returns one page in order of slug: at most `limit` agents, and fewer when their cards are longer than
   * `maxPageBytes` together. `lastSlug` is defined when there are more.
   */
  async findPage(
    org: OrgId,
    { health, trustLevel, q, limit }: AgentQuery,
    afterSlug: string | undefined,
  ): Promise<{ rows: AgentEntity[]; lastSlug: string | undefined }> {
    const query = this.agents
      .createQueryBuilder('agent')
      .select('agent.id', 'id')
      .addSelect('agent.slug', 'slug')
      .addSelect('coalesce(octet_length(agent.card), 0)', 'bytes')
      .where('agent.org_id = :org', { org })
      .orderBy('agent.slug')
      .limit(limit + 1);
    if (health) query.andWhere('agent.health = :health', { health });
    if (trustLevel) query.andWhere('agent.trust_level = :trustLevel', { trustLevel });
    if (q)
      query.andWhere(
        `(strpos(lower(agent.name), lower(:q)) > 0
          or strpos(agent.slug, lower(:q)) > 0
          or strpos(lower(agent.url), lower(:q)) > 0)`,
        { q },
      );
    if (afterSlug !== undefined) query.andWhere('agent.slug > :afterSlug', { afterSlug });
    const found = await query.getRawMany<{ id: AgentId; slug: string; bytes: number }>();
    const page = firstWithin(maxPageBytes, found.slice(0, limit));
    const rows = await this.agents.find({ where: { id: In(page.map(({ id }) => id)) }, order: { slug: 'ASC' } });
    return { rows, lastSlug: page.length < found.length ? page.at(-1)!.slug : undefined };
  }

  /**
   * Returns a text that changes whenever something that readers of the org's agents can see changes. It covers every
   * row, not only the latest `updated_at`: of two concurrent changes, the one that began first may commit last.
   */
  async version(org: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'agents-version',
      `
      select count(*) || ':' || coalesce(sum(hashtextextended(id::text || updated_at::text, 0)), 0) as version
      from agent_cards
      where org_id = :org`,
      { org },
    );
    return row!.version;
  }

  async countByHealth(): Promise<{ health: string; count: number }[]> {
    return this.pg.rows('agents-by-health', 'select health, count(*)::int as count from agent_cards group by health');
  }

  /** Throws `unprocessable` when the org already has the maximum number of agents. */
  async insert(tx: Tx, agent: AgentChange & Pick<AgentEntity, 'id' | 'orgId'>): Promise<void> {
    const agents = tx.manager.getRepository(AgentEntity);
    const most = this.settings.RIALTO_MAX_AGENTS_PER_ORG;
    if ((await agents.countBy({ orgId: agent.orgId })) >= most) {
      throw new RialtoError('unprocessable', {
        message: `the org already has ${most} registered agents, which is the maximum`,
        hint: 'remove an agent, or ask the operator to raise RIALTO_MAX_AGENTS_PER_ORG',
      });
    }
    await agents.insert(agent);
    this.notifyCard(tx, agent);
  }

  /**
   * Updates an agent and returns the new row; null when the agent was removed. With `visible` it also sets
   * `updated_at`, by the clock of the database, and publishes the change.
   */
  async update(tx: Tx, id: AgentId, change: AgentChange, visible: boolean): Promise<AgentEntity | null> {
    const now = { updatedAt: () => 'clock_timestamp()' };
    const agents = tx.manager.getRepository(AgentEntity);
    await agents.update({ id }, { ...change, ...(visible && now) });
    const stored = await agents.findOneBy({ id });
    if (visible && stored) this.notifyCard(tx, stored);
    return stored;
  }

  /** Locks the row until the transaction ends and returns it; null when the agent was removed. */
  lockAgent(tx: Tx, id: AgentId): Promise<AgentEntity | null> {
    return tx.manager.getRepository(AgentEntity).findOne({ where: { id }, lock: { mode: 'pessimistic_write' } });
  }

  /** Returns false when the agent was already removed. */
  async delete(tx: Tx, { id, orgId }: Pick<AgentEntity, 'id' | 'orgId'>): Promise<boolean> {
    const { affected } = await tx.manager.getRepository(AgentEntity).delete({ id });
    if (affected === 1) this.notifyCard(tx, { id, orgId });
    return affected === 1;
  }

  private notifyCard(tx: Tx, { id, orgId }: Pick<AgentEntity, 'id' | 'orgId'>): void {
    this.notices.tell(tx, 'agent.card-changed', { orgId, agentId: id });
  }

  /** Makes processes that reconcile declared agents at the same time wait for each other. */
  async lockDeclarations(tx: Tx): Promise<void> {
    await queryIn(tx, 'select pg_advisory_xact_lock(:key)', { key: declarationLock });
  }

  /**
   * Stores a change and deletes all but the latest ones of the agent, so that frequent changes cannot fill the disk.
   */
  async addChange(tx: Tx, agent: AgentEntity, cardHash: string, changes: CardChange[]): Promise<void> {
    await tx.manager
      .getRepository(AgentCardChangeEntity)
      .insert({ id: newId(), agentId: agent.id, orgId: agent.orgId, cardHash, changes } as never);
    await queryIn(
      tx,
      `
      delete from agent_card_changes
      where agent_id = :agentId and id not in (
        select id
        from agent_card_changes
        where agent_id = :agentId
        order by detected_at desc, id desc
        limit ${keptChanges}
      )`,
      { agentId: agent.id },
    );
  }

  findChanges(agent: AgentId, limit: number): Promise<AgentCardChangeEntity[]> {
    return this.agents.manager.find(AgentCardChangeEntity, {
      where: { agentId: agent },
      order: { detectedAt: 'DESC' },
      take: limit,
    });
  }

  /**
   * Leases an agent for one refresh. Returns undefined when another process has the lease, or when the agent is not
   * due and `isDue` is false.
   */
  async claimDue(id: AgentId, isDue: boolean): Promise<AgentEntity | undefined> {
    const [row] = await this.pg.rows<{ id: string }>(
      'agent-claim',
      `
      update agent_cards
      set lease_until = ${later(leaseMs)}
      where id = :id
        and (:isDue or next_refresh_at <= now())
        and (lease_until is null or lease_until < now())
      returning id`,
      { id, isDue },
    );
    return row && ((await this.agents.findOneBy({ id })) ?? undefined);
  }

  async findDue(limit: number): Promise<AgentId[]> {
    const rows = await this.pg.rows<{ id: AgentId }>(
      'agents-due',
      `
      select id
      from agent_cards
      where next_refresh_at <= now() and (lease_until is null or lease_until < now())
      order by next_refresh_at
      limit :limit`,
      { limit },
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Returns whether the latest calls of the agent, in the last 15 minutes, all failed without a valid A2A answer.
   * False when there were fewer than `failingCalls`.
   */
  async areCallsFailing(tx: Tx, { id, orgId }: Pick<AgentEntity, 'id' | 'orgId'>): Promise<boolean> {
    const [row] = await queryIn<[{ failing: boolean }]>(
      tx,
      `
      select count(*) = ${failingCalls} as failing
      from (
        select error_code
        from a2a_task_instances
        where org_id = :orgId
          and agent_id = :id
          and status <> 'active'
          and started_at > now() - interval '15 minutes'
        order by started_at desc, id desc
        limit ${failingCalls}
      ) latest
      where error_code in ('remote_transport', 'remote_invalid_response')`,
      { orgId, id },
    );
    return row.failing;
  }

  /** Makes an agent due at once, for example because a call could not reach it. */
  async makeDue(id: string): Promise<void> {
    await this.pg.rows(
      'agent-make-due',
      `
      update agent_cards
      set next_refresh_at = now()
      where id = :id and next_refresh_at > now() + interval '2 seconds'`,
      { id },
    );
  }
}
