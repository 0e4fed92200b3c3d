import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { McpServerEntity } from './mcp-server.entity.js';
import { nothingYet } from './offer.js';

const changeLock = 7_262_917;
/** Maximum number of MCP servers of an org; each may need a connection in each process that calls its tools. */
const maxPerOrg = 200;
/** Maximum size in bytes of all offers of an org; each process that serves the org holds them in memory. */
const maxOfferBytes = 16_777_216;

/** Reads and writes the rows of MCP servers. */
@Injectable()
export class UpstreamStore {
  constructor(
    @InjectRepository(McpServerEntity) private readonly servers: Repository<McpServerEntity>,
    private readonly pg: Pg,
  ) {}

  find(org: OrgId, serverId: string, tx?: Tx): Promise<McpServerEntity | null> {
    return this.within(tx).findOneBy({ orgId: org, serverId });
  }

  /** Returns all servers of an org in order of their ids. */
  findAll(org: OrgId, tx?: Tx): Promise<McpServerEntity[]> {
    return this.within(tx).find({ where: { orgId: org }, order: { serverId: 'ASC' } });
  }

  /** All servers of an org in order of their ids, each with a number that changes with the server. */
  revisions(org: OrgId): Promise<Pick<McpServerEntity, 'id' | 'revision'>[]> {
    return this.pg.rows(
      'mcp-server-revisions',
      'select id, revision from mcp_servers where org_id = :org order by server_id',
      { org },
    );
  }

  findByIds(ids: readonly string[]): Promise<McpServerEntity[]> {
    return ids.length === 0 ? Promise.resolve([]) : this.servers.findBy({ id: In([...ids]) });
  }

  /** Returns declared servers with an offer that was never read. */
  findUnread(limit: number): Promise<McpServerEntity[]> {
    return (
      this.servers
        .createQueryBuilder('server')
        // Compares as text: with JSON operators, one offer with a character that PostgreSQL cannot store would make the
        // whole query fail.
        .where(`server.source = 'config' and server.per_user <> 'required' and server.offer::text = :nothingYet`)
        .setParameters({ nothingYet: JSON.stringify(nothingYet) })
        .orderBy('server.id')
        .take(limit)
        .getMany()
    );
  }

  /**
   * Returns a text that changes whenever a server of the org changes. It covers every row, because transactions may
   * commit in any order.
   */
  async version(org: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'mcp-servers-version',
      `
      select count(*) || ':' || coalesce(sum(hashtextextended(id::text || revision::text, 0)), 0) as version
      from mcp_servers
      where org_id = :org`,
      { org },
    );
    return row!.version;
  }

  /** Serializes the changes of the servers of an org, so that the checks of ids and of the maximum are exact. */
  async lock(tx: Tx, org: OrgId): Promise<void> {
    await queryIn(tx, `select pg_advisory_xact_lock(:changeLock, hashtext(:org))`, { changeLock, org });
  }

  /** Returns the current row under the lock. Throws `not_found`. */
  async findLocked(tx: Tx, { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>): Promise<McpServerEntity> {
    await this.lock(tx, orgId);
    const row = await this.within(tx).findOneBy({ id });
    if (row) return row;
    throw new RialtoError('not_found', { message: 'no such MCP server' });
  }

  /** Throws `slug_taken` when the org has a server with this id. */
  async requireFree({ orgId, serverId }: Partial<McpServerEntity>, servers = this.servers): Promise<void> {
    if (!(await servers.existsBy({ orgId, serverId }))) return;
    throw new RialtoError('slug_taken', {
      message: `an MCP server of this org already has the id "${serverId}"`,
      hint: 'choose another id, or delete the other server',
    });
  }

  /** Takes the lock and inserts a row. Throws `slug_taken`, or `unprocessable` when the org has reached the maximum. */
  async insert(tx: Tx, server: Partial<McpServerEntity>): Promise<McpServerEntity> {
    await this.lock(tx, server.orgId!);
    const servers = this.within(tx);
    await this.requireFree(server, servers);
    if ((await servers.countBy({ orgId: server.orgId })) >= maxPerOrg)
      throw new RialtoError('unprocessable', { message: `the org has ${maxPerOrg} MCP servers, which is the maximum` });
    await this.requireRoom(tx, server);
    const row: object = server; // avoids a too deep type instantiation for its json columns
    await servers.insert(row);
    return servers.findOneByOrFail({ id: server.id });
  }

  /**
   * Changes a row, increments its revision and returns it. Throws `not_found` when it was deleted, and `unprocessable`
   * when the offers become too large.
   */
  async update(
    tx: Tx,
    { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>,
    change: Partial<McpServerEntity>,
  ): Promise<McpServerEntity> {
    const servers = this.within(tx);
    if (change.offer) {
      await this.lock(tx, orgId);
      await this.requireRoom(tx, { id, orgId, offer: change.offer });
    }
    const touched = { revision: () => 'revision + 1', updatedAt: () => 'clock_timestamp()' };
    const { affected } = await servers.update({ id }, { ...(change as object), ...touched });
    if (affected !== 1) throw new RialtoError('not_found', { message: 'no such MCP server' });
    return servers.findOneByOrFail({ id });
  }

  async delete(tx: Tx, id: string): Promise<boolean> {
    return (await this.within(tx).delete({ id })).affected === 1;
  }

  private async requireRoom(
    tx: Tx,
    { id, orgId, offer }: Pick<Partial<McpServerEntity>, 'id' | 'orgId' | 'offer'>,
  ): Promise<void> {
    const [row] = await queryIn<{ bytes: string }[]>(
      tx,
      `
      select coalesce(sum(octet_length(offer::text)), 0) as bytes
      from mcp_servers
      where org_id = :orgId and id <> :id`,
      { orgId, id },
    );
    if (Number(row!.bytes) + Buffer.byteLength(JSON.stringify(offer)) <= maxOfferBytes) return;
    throw new RialtoError('unprocessable', {
      message: `the offers of all MCP servers of this org are larger than ${maxOfferBytes} bytes`,
    });
  }

  private within(tx: Tx | undefined): Repository<McpServerEntity> {
    return tx?.manager.getRepository(McpServerEntity) ?? this.servers;
  }
}
