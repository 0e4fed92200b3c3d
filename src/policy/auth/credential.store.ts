import { Injectable } from '@nestjs/common';
import type { OrgRef, Principal, Role } from '../../kernel/call-context.js';
import type { KeyId, OrgId } from '../../kernel/ids.js';
import type { TrustTier } from '../../kernel/trust.js';
import { Pg } from '../../platform/database/pg.js';
import type { SqlParams } from '../../platform/database/sql.js';
import { Vault } from '../../platform/secrets/vault.js';

/** An org with the secrets that can sign its tokens, newest first. */
export interface OrgKeys {
  readonly id: OrgId;
  readonly slug: string;
  readonly trustTier: TrustTier;
  /** Domains that tokens can use for the org instead of its slug. */
  readonly domains: readonly string[];
  readonly secrets: readonly Buffer[];
}

export interface Member {
  readonly role: Role;
  readonly groups: readonly string[];
  readonly revoked: boolean;
}

export interface KeyBearer {
  readonly id: KeyId;
  readonly org: OrgRef;
  readonly name: string;
  readonly role: Role;
  readonly groups: readonly string[];
  readonly agent: string | null;
  readonly expiresAt: Date | null;
}

/** Rights of an API key, and whether it was revoked. */
export interface KeyRights extends Pick<KeyBearer, 'role' | 'groups'> {
  readonly isRevoked: boolean;
}

/** Finds the owners of credentials. */
@Injectable()
export class CredentialStore {
  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  /**
   * Returns an org with its secrets; undefined when it does not exist or was deleted.
   * @param name the slug of the org, or one of its domains.
   */
  async orgKeys(name: string): Promise<OrgKeys | undefined> {
    type Row = {
      id: OrgId;
      slug: string;
      trustTier: TrustTier;
      domains: string[];
      secretId: string | null;
      sealed: string | null;
    };
    const rows = await this.pg.rows<Row>(
      'org-keys',
      `
      select
        o.id, o.slug, o.trust_tier as "trustTier", s.id as "secretId", s.sealed,
        array(select d.domain from org_domains d where d.org_id = o.id) as domains
      from orgs o
      left join org_secrets s on s.org_id = o.id and (s.retires_at is null or s.retires_at > now())
      where (o.slug = :name or o.id = (select d.org_id from org_domains d where d.domain = lower(:name)))
        and o.deleted_at is null
      order by s.created_at desc
      limit 3`,
      { name },
    );
    const org = rows[0];
    if (!org) return undefined;
    const secrets = rows.flatMap(({ secretId: row, sealed }) =>
      row && sealed ? [Buffer.from(this.vault.open(sealed, { table: 'org_secrets', row, org: org.id }).reveal())] : [],
    );
    return { id: org.id, slug: org.slug, trustTier: org.trustTier, domains: org.domains, secrets };
  }

  /** Returns whether an org of this deployment has this id or slug. */
  async isOrg(name: string): Promise<boolean> {
    const rows = await this.pg.rows('is-org', 'select from orgs where slug = :name or id::text = :name', { name });
    return rows.length > 0;
  }

  /**
   * Returns the active member with a subject, and whether the token with this id was revoked; undefined when there is
   * none.
   */
  async findMember(org: OrgId, sub: string, jti: string | undefined): Promise<Member | undefined> {
    const [row] = await this.pg.rows<Member>(
      'member',
      `
      select role, groups, exists (select from revoked_tokens where org_id = :org and jti = :jti) as revoked
      from members
      where org_id = :org and sub = :sub and active`,
      { org, sub, jti: jti ?? '' },
    );
    return row;
  }

  /** Returns the owner of an API key; undefined for a key that is not valid. */
  bearerOfKey(secretHash: string): Promise<KeyBearer | undefined> {
    return this.findBearer('key-bearer', 'k.secret_hash = :secretHash', { secretHash });
  }

  /** Returns the owner of an API key by the id of the key, unless the access token with this `jti` was revoked. */
  bearerOfToken(id: string, jti: string): Promise<KeyBearer | undefined> {
    const condition = `
      k.id = :id
        and not exists (select from revoked_tokens r where r.org_id = k.org_id and r.jti = :jti)`;
    return this.findBearer('token-bearer', condition, { id, jti });
  }

  private async findBearer(name: string, condition: string, params: SqlParams): Promise<KeyBearer | undefined> {
    const [row] = await this.pg.rows<Omit<KeyBearer, 'org'> & { orgId: OrgId; slug: string; trustTier: TrustTier }>(
      name,
      `
      select
        k.id, k.name, k.role, k.groups, k.agent, k.expires_at as "expiresAt",
        k.org_id as "orgId", o.slug, o.trust_tier as "trustTier"
      from api_keys k join orgs o on o.id = k.org_id
      where ${condition}
        and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now())
        and o.deleted_at is null`,
      params,
    );
    return row && { ...row, org: { id: row.orgId, slug: row.slug, trustTier: row.trustTier } };
  }

  /**
   * Returns the newest key of a service or an agent, valid keys before revoked ones; undefined when there was never
   * one.
   */
  async findKeyRights(org: OrgId, { kind, id }: Pick<Principal, 'kind' | 'id'>): Promise<KeyRights | undefined> {
    const [row] = await this.pg.rows<KeyRights>(
      'key-of-principal',
      `
      select role, groups, revoked_at is not null as "isRevoked"
      from api_keys
      where org_id = :org and case when :isAgent then agent = :id else agent is null and name = :id end
      order by revoked_at is not null, created_at desc
      limit 1`,
      { org, isAgent: kind === 'agent', id },
    );
    return row;
  }

  async orgBySlug(slug: string): Promise<{ id: OrgId; slug: string } | undefined> {
    const [row] = await this.pg.rows<{ id: OrgId; slug: string }>(
      'org-by-slug',
      'select id, slug from orgs where slug = :slug and deleted_at is null',
      { slug },
    );
    return row;
  }
}
