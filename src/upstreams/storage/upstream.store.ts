import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { Tx } from '../../platform/database/tx.js';
import { McpServerEntity } from './mcp-server.entity.js';
import { nothingYet } from './offer.js';

const changeLock = 7_262_917;
/** Each is a line of every process that calls its tools. */
const maxPerOrg = 200;
/** What the servers of an org offer is in the memory of each process that serves it. */
const maxOfferBytes = 16_777_216;

/** The rows of MCP servers. */
@Injectable()
export class UpstreamStore {
  constructor(
    @InjectRepository(McpServerEntity) private readonly servers: Repository<McpServerEntity>,
    private readonly pg: Pg,
  ) {}

  find(org: OrgId, serverId: string, tx?: Tx): Promise<McpServerEntity | null> {
    return this.within(tx).findOneBy({ orgId: org, serverId });
  }

  /** In order of their ids. */
  findAll(org: OrgId, tx?: Tx): Promise<McpServerEntity[]> {
    return this.within(tx).find({ where: { orgId: org }, order: { serverId: 'ASC' } });
  }

  /** Declared ones that never said what they have. */
  findUnread(limit: number): Promise<McpServerEntity[]> {
    return (
      this.servers
        .createQueryBuilder('server')
        // As a text: looked into, one offer with a letter that PostgreSQL has no place for would end the search for all.
        .where(`server.source = 'config' and server.per_user <> 'required' and server.offer::text = :nothingYet`)
        .setParameters({ nothingYet: JSON.stringify(nothingYet) })
        .orderBy('server.id')
        .take(limit)
        .getMany()
    );
  }

  /** A text that changes whenever a server of the org does; every row counts, for commits come in any order. */
  async version(org: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'mcp-servers-version',
      `select count(*) || ':' || coalesce(sum(hashtextextended(id::text || revision::text, 0)), 0) as version
       from mcp_servers where org_id = $1`,
      [org],
    );
    return row!.version;
  }

  /** One change of an org's servers at a time, so that ids are free and the maximum is exact. */
  async lock(tx: Tx, org: OrgId): Promise<void> {
    await tx.manager.query('select pg_advisory_xact_lock($1, hashtext($2))', [changeLock, org]);
  }

  /** The row as it is now, under the lock. Throws `not_found`. */
  async locked(tx: Tx, { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>): Promise<McpServerEntity> {
    await this.lock(tx, orgId);
    const row = await this.within(tx).findOneBy({ id });
    if (row) return row;
    throw new RialtoError('not_found', { message: 'no such MCP server' });
  }

  /** Throws `slug_taken`. */
  async requireFree({ orgId, serverId }: Partial<McpServerEntity>, servers = this.servers): Promise<void> {
    if (!(await servers.existsBy({ orgId, serverId }))) return;
    throw new RialtoError('slug_taken', {
      message: `an MCP server of this org is called "${serverId}" already`,
      hint: 'choose another id, or delete the other server',
    });
  }

  /** Under the lock. Throws `slug_taken`, or `unprocessable` when the org has as many as it may have. */
  async insert(tx: Tx, server: Partial<McpServerEntity>): Promise<McpServerEntity> {
    const servers = this.within(tx);
    await this.requireFree(server, servers);
    if ((await servers.countBy({ orgId: server.orgId })) >= maxPerOrg)
      throw new RialtoError('unprocessable', { message: `an org may have ${maxPerOrg} MCP servers` });
    await this.requireRoom(tx, server);
    const row: object = server; // spares the compiler the depths of its json columns
    await servers.insert(row);
    return servers.findOneByOrFail({ id: server.id });
  }

  /** Raises the revision. The row as it is now; throws `not_found` when it is gone, `unprocessable` for an offer too much. */
  async update(
    tx: Tx,
    { id, orgId }: Pick<McpServerEntity, 'id' | 'orgId'>,
    change: Partial<McpServerEntity>,
  ): Promise<McpServerEntity> {
    const servers = this.within(tx);
    if (change.offer) await this.requireRoom(tx, { id, orgId, offer: change.offer });
    const moved = { revision: () => 'revision + 1', updatedAt: () => 'clock_timestamp()' };
    const { affected } = await servers.update({ id }, { ...(change as object), ...moved });
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
    await this.lock(tx, orgId!);
    const [row] = await tx.manager.query<{ bytes: string }[]>(
      'select coalesce(sum(octet_length(offer::text)), 0) as bytes from mcp_servers where org_id = $1 and id <> $2',
      [orgId, id],
    );
    if (Number(row!.bytes) + Buffer.byteLength(JSON.stringify(offer)) <= maxOfferBytes) return;
    throw new RialtoError('unprocessable', { message: 'the MCP servers of this org offer more than can be kept' });
  }

  private within(tx: Tx | undefined): Repository<McpServerEntity> {
    return tx?.manager.getRepository(McpServerEntity) ?? this.servers;
  }
}
