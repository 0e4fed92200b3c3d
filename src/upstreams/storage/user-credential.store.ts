import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Not, Repository } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { McpServerEntity } from './mcp-server.entity.js';
import { nothingYet } from './offer.js';
import { pinsOf } from './tool-pins.js';
import type { Offer } from '../upstream.types.js';
import { UserCredentialEntity } from './user-credential.entity.js';

/** Maximum size in bytes of the offer of a server to one user. Each process that serves the user holds it in memory. */
const maxOfferBytes = 2_097_152;
/**
 * Excludes withdrawn credentials. Their rows keep only the approved and the quarantined tools, because a new credential
 * without them would approve changed tools.
 */
const isThere = { sealed: Not('') };

/** Credential with its offer as a text, so that equal offers can be recognized. */
export interface KeptCredential extends Pick<
  UserCredentialEntity,
  'id' | 'server' | 'origin' | 'headers' | 'sealed' | 'quarantinedTools'
> {
  readonly offer: string;
}

/** The offer of a server to the owner of a credential, and the tools that were approved and quarantined. */
type Offered = Pick<UserCredentialEntity, 'offer' | 'approvedTools' | 'quarantinedTools'>;

/** Reads and writes the credentials that callers have set for MCP servers. */
@Injectable()
export class UserCredentialStore {
  constructor(
    @InjectRepository(UserCredentialEntity) private readonly rows: Repository<UserCredentialEntity>,
    private readonly pg: Pg,
  ) {}

  /** Returns a text that changes whenever a credential of the caller or its offer changes. */
  async version(org: string, caller: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'user-credentials-version',
      `
      select count(*) || ':' || coalesce(sum(hashtextextended(id::text || revision::text, 0)), 0) as version
      from mcp_user_credentials
      where org_id = :org and caller = :caller`,
      { org, caller },
    );
    return row!.version;
  }

  /** Returns all credentials of a caller. */
  credentialsOf(org: string, caller: string): Promise<KeptCredential[]> {
    return this.pg.rows<KeptCredential>(
      'user-credentials-of',
      `
      select id, server, origin, headers, sealed, offer::text as offer, quarantined_tools as "quarantinedTools"
      from mcp_user_credentials
      where org_id = :org and caller = :caller`,
      { org, caller },
    );
  }

  find(server: string, caller: string): Promise<UserCredentialEntity | null> {
    return this.rows.findOneBy({ server, caller });
  }

  /** Returns one credential of a server, with its offer. */
  findOne(server: string, id: string): Promise<UserCredentialEntity | null> {
    return this.rows.findOneBy({ server, id, ...isThere });
  }

  /** Lists the credentials of a server in order of their callers, without offers. */
  findPage(server: string, after: string, limit: number): Promise<UserCredentialEntity[]> {
    return this.rows.find({
      select: { id: true, caller: true, createdAt: true, quarantinedTools: true },
      where: { server, caller: MoreThan(after), ...isThere },
      order: { caller: 'ASC' },
      take: limit,
    });
  }

  /** Returns those of `ids` that still exist. */
  async findExisting(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.pg.rows<{ id: string }>(
      'user-credentials-left',
      `
      select id
      from mcp_user_credentials
      where id = any(:ids::uuid[])`,
      { ids },
    );
    return new Set(rows.map(({ id }) => id));
  }

  /** Replaces the caller's former credential. Returns the creation time; undefined when the server was deleted. */
  async put(tx: Tx, given: Omit<UserCredentialEntity, 'revision' | 'createdAt'>): Promise<Date | undefined> {
    const { id, orgId, server, caller, origin, headers, sealed, ...offered } = given;
    const rows = await queryIn<{ createdAt: Date }[]>(
      tx,
      `
      insert into mcp_user_credentials
        (id, org_id, server, caller, origin, headers, sealed, offer, approved_tools, quarantined_tools)
      select :id, :orgId, m.id, :caller, :origin, :headers::jsonb, :sealed,
        :offer::json, :approvedTools::json, :quarantinedTools::json
      from mcp_servers m
      where m.id = :server and m.org_id = :orgId
      for share
      on conflict (server, caller) do update
      set id = excluded.id,
        origin = excluded.origin,
        headers = excluded.headers,
        sealed = excluded.sealed,
        offer = excluded.offer,
        approved_tools = excluded.approved_tools,
        quarantined_tools = excluded.quarantined_tools,
        revision = 1,
        created_at = now()
      returning created_at as "createdAt"`,
      { id, orgId, server, caller, origin, headers: JSON.stringify(headers), sealed, ...jsonTexts(offered) },
    );
    return rows[0]?.createdAt;
  }

  /**
   * Withdraws a credential of a server; returns undefined when there is none. Its approved and quarantined tools stay
   * stored.
   */
  async withdraw(
    tx: Tx,
    server: string,
    by: Pick<UserCredentialEntity, 'caller'> | Pick<UserCredentialEntity, 'id'>,
  ): Promise<UserCredentialEntity | undefined> {
    const rows = tx.manager.getRepository(UserCredentialEntity);
    const known = await rows.findOne({ where: { server, ...by, ...isThere }, lock: { mode: 'pessimistic_write' } });
    if (!known) return undefined;
    await queryIn(
      tx,
      `
      update mcp_user_credentials
      set id = :newId,
        headers = '[]',
        sealed = '',
        offer = :offer::json,
        approved_tools = :approvedTools::json,
        revision = revision + 1
      where id = :id`,
      {
        id: known.id,
        newId: newId(),
        offer: JSON.stringify(nothingYet),
        approvedTools: JSON.stringify(pinsOf(known)),
      },
    );
    return known;
  }

  /** Locks and returns a credential with its server. Finds a withdrawn credential by its caller too. */
  async findLocked(
    tx: Tx,
    by: Pick<UserCredentialEntity, 'id'> | Pick<UserCredentialEntity, 'server' | 'caller'>,
  ): Promise<{ stored: UserCredentialEntity; server: McpServerEntity } | undefined> {
    // Locks the server before the credential, in the same order as the deletion of a server.
    if ('server' in by)
      await queryIn(
        tx,
        `
        select
        from mcp_servers
        where id = :server
        for share`,
        { server: by.server },
      );
    const rows = tx.manager.getRepository(UserCredentialEntity);
    const stored = await rows.findOne({ where: by, lock: { mode: 'pessimistic_write' } });
    const server = stored && (await tx.manager.getRepository(McpServerEntity).findOneBy({ id: stored.server }));
    return stored && server ? { stored, server } : undefined;
  }

  /** Stores the current offer and pins of a credential; the caller holds the lock. */
  async keepOffer(tx: Tx, id: string, offered: Offered): Promise<void> {
    await queryIn(
      tx,
      `
      update mcp_user_credentials
      set offer = :offer::json,
        approved_tools = :approvedTools::json,
        quarantined_tools = :quarantinedTools::json,
        revision = revision + 1
      where id = :id`,
      { id, ...jsonTexts(offered) },
    );
  }
}

/** Throws `unprocessable` for an offer that is too large to store. */
export function requireFit(offer: Offer): void {
  if (Buffer.byteLength(JSON.stringify(offer)) <= maxOfferBytes) return;
  throw new RialtoError('unprocessable', {
    message: `the offer of the MCP server is larger than ${maxOfferBytes} bytes`,
  });
}

function jsonTexts({ offer, approvedTools, quarantinedTools }: Offered) {
  return {
    offer: JSON.stringify(offer),
    approvedTools: JSON.stringify(approvedTools),
    quarantinedTools: JSON.stringify(quarantinedTools),
  };
}
