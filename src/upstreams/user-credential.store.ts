import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Repository } from 'typeorm';
import { Pg } from '../platform/database/pg.js';
import type { Tx } from '../platform/database/tx.js';
import { McpServerEntity } from './mcp-server.entity.js';
import type { Offer } from './upstream.types.js';
import { UserCredentialEntity } from './user-credential.entity.js';

/** What a server offers one of its users, in bytes: each process that serves the user has it in memory. */
const maxOfferBytes = 2_097_152;

/** A credential with its offer as the text that tells equal ones. */
export interface KeptCredential extends Pick<
  UserCredentialEntity,
  'id' | 'server' | 'origin' | 'headers' | 'sealed' | 'quarantinedTools'
> {
  readonly offer: string;
}

/** The rows of credentials that callers have given for MCP servers. */
@Injectable()
export class UserCredentialStore {
  constructor(
    @InjectRepository(UserCredentialEntity) private readonly rows: Repository<UserCredentialEntity>,
    private readonly pg: Pg,
  ) {}

  /** A text that changes whenever a credential of the caller does, or what is offered for it. */
  async version(org: string, caller: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'user-credentials-version',
      `select count(*) || ':' || coalesce(sum(hashtextextended(id::text || revision::text, 0)), 0) as version
       from mcp_user_credentials where org_id = $1 and caller = $2`,
      [org, caller],
    );
    return row!.version;
  }

  /** All of a caller. */
  of(org: string, caller: string): Promise<KeptCredential[]> {
    return this.pg.rows<KeptCredential>(
      'user-credentials-of',
      `select id, server, origin, headers, sealed, offer::text as offer, quarantined_tools as "quarantinedTools" from mcp_user_credentials
       where org_id = $1 and caller = $2`,
      [org, caller],
    );
  }

  find(server: string, caller: string): Promise<UserCredentialEntity | null> {
    return this.rows.findOneBy({ server, caller });
  }

  /** Of a server, in order of whose they are. */
  page(server: string, after: string, limit: number): Promise<UserCredentialEntity[]> {
    return this.rows.find({ where: { server, caller: MoreThan(after) }, order: { caller: 'ASC' }, take: limit });
  }

  /** Those of `ids` that are still there. */
  async left(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.pg.rows<{ id: string }>(
      'user-credentials-left',
      'select id from mcp_user_credentials where id = any($1::uuid[])',
      [ids],
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** In place of the caller's former one: since when it is there; undefined when the server is gone. */
  async put(
    tx: Tx,
    given: Omit<UserCredentialEntity, 'revision' | 'createdAt' | 'approvedTools' | 'quarantinedTools'>,
  ): Promise<Date | undefined> {
    const { id, orgId, server, caller, origin, headers, sealed, offer } = given;
    const rows = await tx.manager.query<{ created_at: Date }[]>(
      `insert into mcp_user_credentials (id, org_id, server, caller, origin, headers, sealed, offer)
       select $1, $2, m.id, $4, $5, $6::jsonb, $7, $8::json from mcp_servers m where m.id = $3 and m.org_id = $2 for share
       on conflict (server, caller) do update set id = excluded.id, origin = excluded.origin, headers = excluded.headers,
         sealed = excluded.sealed, offer = excluded.offer, approved_tools = '[]', quarantined_tools = '[]', revision = 1, created_at = now()
       returning created_at`,
      [id, orgId, server, caller, origin, JSON.stringify(headers), sealed, JSON.stringify(offer)],
    );
    return rows[0]?.created_at;
  }

  /** One of a server; undefined when there is none. */
  async delete(
    tx: Tx,
    server: string,
    by: Pick<UserCredentialEntity, 'caller'> | Pick<UserCredentialEntity, 'id'>,
  ): Promise<UserCredentialEntity | undefined> {
    const rows = tx.manager.getRepository(UserCredentialEntity);
    const known = await rows.findOneBy({ server, ...by });
    if (!known || (await rows.delete({ id: known.id })).affected !== 1) return undefined;
    return known;
  }

  /** One that is there, under its lock, with the server that it is for. */
  async locked(tx: Tx, id: string): Promise<{ kept: UserCredentialEntity; server: McpServerEntity } | undefined> {
    const rows = tx.manager.getRepository(UserCredentialEntity);
    const kept = await rows.findOne({ where: { id }, lock: { mode: 'pessimistic_write' } });
    const server = kept && (await tx.manager.getRepository(McpServerEntity).findOneBy({ id: kept.server }));
    return kept && server ? { kept, server } : undefined;
  }

  /** What it is offered now, under its lock. */
  async keepOffer(
    tx: Tx,
    id: string,
    {
      offer,
      approvedTools,
      quarantinedTools,
    }: Pick<UserCredentialEntity, 'offer' | 'approvedTools' | 'quarantinedTools'>,
  ): Promise<void> {
    await tx.manager.query(
      `update mcp_user_credentials set offer = $2::json, approved_tools = $3::json, quarantined_tools = $4::json,
         revision = revision + 1 where id = $1`,
      [id, ...[offer, approvedTools, quarantinedTools].map((value) => JSON.stringify(value))],
    );
  }

  /** Whether what is offered is little enough to be kept. */
  fits(offer: Offer): boolean {
    return Buffer.byteLength(JSON.stringify(offer)) <= maxOfferBytes;
  }
}
