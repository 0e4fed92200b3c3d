import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, IsNull, Not, Repository } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid, type AgentId, type OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { TrustQuotas } from '../../policy/trust-quotas.js';
import { PublishedAgentEntity } from './published-agent.entity.js';
import { calledOf } from './published-names.js';
import type { PublishedQuery } from './publishing.types.js';
import type { PublishedSource } from '../published.types.js';

const changeLock = 7_262_915;
const handleLock = 7_262_921;
const live = { archivedAt: IsNull() };

/** @see PublishedAgentStore.executorOf */
export interface SealedExecutor {
  readonly orgId: OrgId;
  readonly secret: string | null;
  readonly url: string | null;
  readonly query: string | null;
}

/** Reads and writes the rows of published agents, and publishes their changes. */
@Injectable()
export class PublishedAgentStore {
  constructor(
    @InjectRepository(PublishedAgentEntity) private readonly agents: Repository<PublishedAgentEntity>,
    private readonly pg: Pg,
    private readonly notices: Notices,
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly quotas: TrustQuotas,
  ) {}

  /** Finds an agent of one org by id or name; archived agents are not found. */
  find(org: OrgId, idOrName: string, tx?: Tx): Promise<PublishedAgentEntity | null> {
    return this.within(tx).findOneBy({
      orgId: org,
      ...live,
      ...(isUuid(idOrName) ? { id: idOrName as AgentId } : { name: idOrName }),
    });
  }

  /** Like `find`. Throws `not_found`. */
  async findOrFail(org: OrgId, idOrName: string, tx?: Tx): Promise<PublishedAgentEntity> {
    const row = await this.find(org, idOrName, tx);
    if (!row) throw noPublishedAgent();
    return row;
  }

  /** Returns the revision of each agent of an org, in order of name. */
  revisions(org: OrgId): Promise<Pick<PublishedAgentEntity, 'id' | 'revision'>[]> {
    return this.pg.rows(
      'published-revisions',
      `
      select id, revision
      from published_agents
      where org_id = :org and archived_at is null
      order by name`,
      { org },
    );
  }

  /** Archived agents are not found. */
  findByIds(ids: readonly AgentId[]): Promise<PublishedAgentEntity[]> {
    return ids.length === 0 ? Promise.resolve([]) : this.agents.findBy({ id: In([...ids]), ...live });
  }

  findAll(org: OrgId, tx?: Tx): Promise<PublishedAgentEntity[]> {
    return this.within(tx).find({ where: { orgId: org, ...live }, order: { name: 'ASC' } });
  }

  /** Returns one page in order of name, with one extra row when there are more. */
  findPage(org: OrgId, { q, limit }: PublishedQuery, afterName: string | undefined): Promise<PublishedAgentEntity[]> {
    const query = this.agents
      .createQueryBuilder('agent')
      .where('agent.org_id = :org and agent.archived_at is null', { org })
      .orderBy('agent.name')
      .limit(limit + 1);
    if (q)
      query.andWhere('(strpos(agent.name, lower(:q)) > 0 or strpos(lower(agent.description), lower(:q)) > 0)', { q });
    if (afterName !== undefined) query.andWhere('agent.name > :afterName', { afterName });
    return query.getMany();
  }

  /**
   * Finds the last archived agent with a name and a source, so that a declaration that returns continues the same
   * agent.
   */
  findArchived(tx: Tx, org: OrgId, name: string, source: PublishedSource): Promise<PublishedAgentEntity | null> {
    return this.within(tx).findOne({
      where: { orgId: org, name, source, archivedAt: Not(IsNull()) },
      order: { archivedAt: 'DESC' },
    });
  }

  /** Returns the org of an agent, archived or not. */
  async orgOf(id: AgentId): Promise<OrgId | undefined> {
    const [row] = await this.pg.rows<{ org: OrgId }>(
      'published-org',
      'select org_id as org from published_agents where id = :id',
      { id },
    );
    return row?.org;
  }

  /** Returns the org of the enabled agent with a handle that names a host, as JSON text; `null` when there is none. */
  async ownerOfHandle(handle: string): Promise<string> {
    const [row] = await this.pg.rows<{ owner: string }>(
      'published-handle-owner',
      `
      select json_build_object('id', o.id, 'slug', o.slug)::text as owner
      from published_agents a
      join orgs o on o.id = a.org_id
      where a.handle = :handle
        and a.handle like '%@%'
        and a.archived_at is null
        and a.enabled
        and o.deleted_at is null
      order by a.created_at, a.id
      limit 1`,
      { handle },
    );
    return row?.owner ?? 'null';
  }

  /**
   * Returns the sealed secret and URL for a call to an executor, also for an archived agent: its running calls
   * continue.
   */
  async executorOf(id: AgentId): Promise<SealedExecutor | undefined> {
    const [row] = await this.pg.rows<SealedExecutor>(
      'published-executor',
      `
      select org_id as "orgId", executor_secret as secret, executor->>'url' as url, executor_query as query
      from published_agents
      where id = :id`,
      { id },
    );
    return row;
  }

  /**
   * Returns a text that changes whenever an agent of the org does. It covers every row, because transactions can
   * commit in any order.
   */
  async version(org: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'published-version',
      `
      select count(*) || ':' || coalesce(sum(hashtextextended(id::text || revision::text, 0)), 0) as version
      from published_agents
      where org_id = :org and archived_at is null`,
      { org },
    );
    return row!.version;
  }

  /**
   * Serialises changes of an org's agents, so that names and handles stay unique together and the maximum is exact.
   */
  async lockOrg(tx: Tx, org: OrgId): Promise<void> {
    await queryIn(tx, 'select pg_advisory_xact_lock(:key, hashtext(:org))', { key: changeLock, org });
  }

  /**
   * Inserts an agent; call it under the lock. Throws `slug_taken`, `unprocessable` when the org has the maximum number
   * of agents, and `rate_limited` when its trust tier allows no more.
   */
  async insert(tx: Tx, agent: Partial<PublishedAgentEntity>): Promise<PublishedAgentEntity> {
    const agents = this.within(tx);
    const most = this.settings.RIALTO_MAX_AGENTS_PER_ORG;
    if ((await agents.countBy({ orgId: agent.orgId, ...live })) >= most) {
      throw new RialtoError('unprocessable', {
        message: `the org already has ${most} published agents, which is the maximum`,
        hint: 'archive an agent, or ask the operator to raise RIALTO_MAX_AGENTS_PER_ORG',
      });
    }
    if (agent.source === 'api')
      await this.quotas.requireWithin(
        agent.orgId!,
        'agents',
        async () => (await agents.countBy({ orgId: agent.orgId, source: 'api', ...live })) + 1,
        tx,
      );
    await this.requireFree(tx, agent);
    await this.requireOwnHost(tx, agent);
    const row: object = agent; // avoids a deep type check of the jsonb columns
    await agents.insert(row);
    return this.publishChange(tx, await agents.findOneByOrFail({ id: agent.id }));
  }

  /**
   * Updates an agent, raises its revision and returns the new row; call it under the lock. Throws `slug_taken`, or
   * `not_found` when the agent was removed.
   */
  async update(tx: Tx, id: AgentId, change: Partial<PublishedAgentEntity>): Promise<PublishedAgentEntity> {
    const agents = this.within(tx);
    const known = await agents.findOneByOrFail({ id });
    await this.requireFree(tx, { ...known, ...change });
    if (change.handle !== undefined && change.handle !== known.handle)
      await this.requireOwnHost(tx, { id, orgId: known.orgId, handle: change.handle });
    const moved = { revision: () => 'revision + 1', updatedAt: () => 'clock_timestamp()' };
    await agents.update({ id }, { ...(change as object), ...moved });
    return this.publishChange(tx, await agents.findOneByOrFail({ id }));
  }

  /** Returns false when the agent was already archived. */
  async archive(tx: Tx, row: PublishedAgentEntity): Promise<boolean> {
    const now = { archivedAt: () => 'clock_timestamp()', updatedAt: () => 'clock_timestamp()' };
    const change = { ...now, revision: () => 'revision + 1' };
    const { affected } = await this.within(tx).update({ id: row.id, ...live }, change);
    if (affected === 1) this.publishChange(tx, row);
    return affected === 1;
  }

  private publishChange(tx: Tx, row: PublishedAgentEntity): PublishedAgentEntity {
    this.notices.tell(tx, 'published.changed', { orgId: row.orgId, agentId: row.id });
    return row;
  }

  /** Returns the repository inside the transaction, if there is one: a second connection may not be free. */
  private within(tx: Tx | undefined): Repository<PublishedAgentEntity> {
    return tx?.manager.getRepository(PublishedAgentEntity) ?? this.agents;
  }

  /**
   * Throws `slug_taken` when an agent of any org has the handle: one that names a host is one agent in the deployment.
   * The org that owns the host as a domain may take it in any case. Two orgs that give a handle at the same time wait
   * for each other.
   */
  private async requireOwnHost(tx: Tx, { id, orgId: org, handle }: Partial<PublishedAgentEntity>): Promise<void> {
    if (!handle?.includes('@')) return;
    await queryIn(tx, 'select pg_advisory_xact_lock(:key, hashtext(:handle))', { key: handleLock, handle });
    const [row] = await queryIn<{ taken: boolean }[]>(
      tx,
      `
      select exists (
          select
          from published_agents
          where handle = :handle and handle like '%@%' and archived_at is null and id <> :id
        ) and not exists (
          select
          from org_domains
          where domain = :host and org_id = :org
        ) as taken`,
      { handle, host: calledOf(handle)?.host, id, org },
    );
    if (row!.taken)
      throw new RialtoError('slug_taken', {
        message: `another agent of this deployment already has the handle "${handle}"`,
        hint: 'choose another handle; one with a host belongs to one agent in the whole deployment',
        data: { name: handle },
      });
  }

  /** Throws `slug_taken` when another agent has the name or handle. Both share one namespace. */
  private async requireFree(tx: Tx, { id, orgId, name, handle }: Partial<PublishedAgentEntity>): Promise<void> {
    const words = [name, handle].filter((word) => word !== null && word !== undefined);
    const [other] = await this.within(tx)
      .createQueryBuilder('agent')
      .where('agent.org_id = :orgId and agent.archived_at is null and agent.id <> :id', { orgId, id })
      .andWhere('(agent.name in (:...words) or agent.handle in (:...words))', { words })
      .limit(1)
      .getMany();
    if (other) throw wordTaken(words.find((word) => word === other.name || word === other.handle)!);
  }
}

export function noPublishedAgent(): RialtoError {
  return new RialtoError('not_found', { message: 'no such agent' });
}

function wordTaken(word: string): RialtoError {
  return new RialtoError('slug_taken', {
    message: `another agent of this org already has the name or handle "${word}"`,
    hint: 'choose another name or handle, or archive the other agent',
    data: { name: word },
  });
}
