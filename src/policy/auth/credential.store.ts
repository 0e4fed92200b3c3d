import { Injectable } from '@nestjs/common';
import type { Principal, Role } from '../../kernel/call-context.js';
import type { KeyId, OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { Vault } from '../../platform/secrets/vault.js';

/** An org with the secrets that can sign its tokens, newest first. */
export interface OrgKeys {
  readonly id: OrgId;
  readonly slug: string;
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
  readonly org: { readonly id: OrgId; readonly slug: string };
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
    type Row = { id: OrgId; slug: string; domains: string[]; secret_id: string | null; sealed: string | null };
    const rows = await this.pg.rows<Row>(
      'org-keys',
      `select o.id, o.slug, s.id as secret_id, s.sealed, array(select d.domain from org_domains d where d.org_id = o.id) as domains from orgs o
       left join org_secrets s on s.org_id = o.id and (s.retires_at is null or s.retires_at > now())
       where (o.slug = $1 or o.id = (select d.org_id from org_domains d where d.domain = lower($1))) and o.deleted_at is null
       order by s.created_at desc limit 3`,
      [name],
    );
    const org = rows[0];
    if (!org) return undefined;
    const secrets = rows.flatMap(({ secret_id: row, sealed }) =>
      row && sealed ? [Buffer.from(this.vault.open(sealed, { table: 'org_secrets', row, org: org.id }).reveal())] : [],
    );
    return { id: org.id, slug: org.slug, domains: org.domains, secrets };
  }

  /** Returns whether an org of this deployment has this id or slug. */
  async isOrg(name: string): Promise<boolean> {
    const rows = await this.pg.rows('is-org', 'select from orgs where slug = $1 or id::text = $1', [name]);
    return rows.length > 0;
  }

  /**
   * Returns the active member with a subject, and whether the token with this id was revoked; undefined when there is
   * none.
   */
  async member(org: OrgId, sub: string, jti: string | undefined): Promise<Member | undefined> {
    const [row] = await this.pg.rows<Member>(
      'member',
      `select role, groups, exists (select from revoked_tokens where org_id = $1 and jti = $3) as revoked
       from members where org_id = $1 and sub = $2 and active`,
      [org, sub, jti ?? ''],
    );
    return row;
  }

  async bearerOfKey(secretHash: string): Promise<KeyBearer | undefined> {
    const [row] = await this.pg.rows<Omit<KeyBearer, 'org'> & { org_id: OrgId; slug: string }>(
      'key-bearer',
      `select k.id, k.org_id, o.slug, k.name, k.role, k.groups, k.agent,
              k.expires_at as "expiresAt"
       from api_keys k join orgs o on o.id = k.org_id
       where k.secret_hash = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now()) and o.deleted_at is null`,
      [secretHash],
    );
    return row && { ...row, org: { id: row.org_id, slug: row.slug } };
  }

  /**
   * Returns the newest key of a service or an agent, valid keys before revoked ones; undefined when there was never
   * one.
   */
  async keyOf(org: OrgId, { kind, id }: Pick<Principal, 'kind' | 'id'>): Promise<KeyRights | undefined> {
    const [row] = await this.pg.rows<KeyRights>(
      'key-of-principal',
      `select role, groups, revoked_at is not null as "isRevoked" from api_keys
       where org_id = $1 and case when $2 then agent = $3 else agent is null and name = $3 end
       order by revoked_at is not null, created_at desc limit 1`,
      [org, kind === 'agent', id],
    );
    return row;
  }

  async orgBySlug(slug: string): Promise<{ id: OrgId; slug: string } | undefined> {
    const [row] = await this.pg.rows<{ id: OrgId; slug: string }>(
      'org-by-slug',
      'select id, slug from orgs where slug = $1 and deleted_at is null',
      [slug],
    );
    return row;
  }
}
