import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { newId, type OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { Vault, type Secret } from '../../platform/secrets/vault.js';
import { WebhookSecretEntity } from './webhook-secret.entity.js';

/** A sealed secret, as the claim of a delivery reads it. */
export interface SealedSecret {
  readonly id: string;
  readonly sealed: string;
}

/**
 * Most active secrets of an org, because each adds a signature to the header. A new secret above the limit ends the
 * oldest.
 */
const maxActive = 5;
const maxOpened = 1_000;

/** SQL for the active secrets of a row's org, newest first, as JSON. @param org a column. */
export const lastingSecrets = (org: string): string => `(
  select coalesce(json_agg(json_build_object('id', s.id, 'sealed', s.sealed) order by s.id desc), '[]')
  from webhook_secrets s
  where s.org_id = ${org} and (s.ends_at is null or s.ends_at > now())
)`;

/** Stores the signing secrets of orgs, sealed. */
@Injectable()
export class WebhookSecretStore {
  /** Cache of opened secrets, because each delivery needs one. The key holds all inputs of the vault. */
  private readonly opened = new BoundedMap<string, Secret>(maxOpened);

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  /**
   * Creates a secret; earlier ones stay active for `graceSeconds`. Returns the plain secret, which cannot be read
   * again.
   */
  async create(tx: Tx, org: OrgId, graceSeconds: number): Promise<{ row: WebhookSecretEntity; secret: string }> {
    // Serialized: two at the same time would not see each other's secret, and would end it or leave two without an end.
    await queryIn(tx, `select pg_advisory_xact_lock(hashtextextended('webhook-secrets:' || :org::text, 0))`, { org });
    const id = newId();
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const secrets = tx.manager.getRepository(WebhookSecretEntity);
    await queryIn(
      tx,
      `
      update webhook_secrets
      set ends_at = now() + make_interval(secs => :graceSeconds)
      where org_id = :org and (ends_at is null or ends_at > now() + make_interval(secs => :graceSeconds))`,
      { org, graceSeconds },
    );
    await queryIn(
      tx,
      `
      delete from webhook_secrets
      where org_id = :org and (ends_at <= now() or id not in (
        select id
        from webhook_secrets
        where org_id = :org and (ends_at is null or ends_at > now())
        order by id desc
        limit ${maxActive - 1}
      ))`,
      { org },
    );
    await secrets.insert({
      id,
      orgId: org,
      sealed: this.vault.seal(secret, sealPlace(org, id)),
      hint: secret.slice(-4),
    });
    return { row: await secrets.findOneByOrFail({ id }), secret };
  }

  /** The active secrets, newest first. */
  list(org: OrgId): Promise<Pick<WebhookSecretEntity, 'id' | 'hint' | 'createdAt' | 'endsAt'>[]> {
    return this.pg.rows(
      'webhook-secrets',
      `
      select id, hint, created_at as "createdAt", ends_at as "endsAt"
      from webhook_secrets
      where org_id = :org and (ends_at is null or ends_at > now())
      order by id desc`,
      { org },
    );
  }

  /** The plain active secrets, newest first. */
  async signing(org: OrgId): Promise<string[]> {
    const [row] = await this.pg.rows<{ secrets: SealedSecret[] }>(
      'webhook-secrets-signing',
      `select ${lastingSecrets(':org')} as secrets`,
      { org },
    );
    return row!.secrets.map((sealed) => this.openSecret(org, sealed));
  }

  /** Ends a secret. Returns false when the org has no such secret. */
  async endNow(tx: Tx, org: OrgId, id: string): Promise<boolean> {
    const { affected } = await tx.manager.getRepository(WebhookSecretEntity).delete({ id, orgId: org });
    return affected === 1;
  }

  /** Opens a secret that a claim has read. Throws `unavailable` and `internal` as the vault does. */
  openSecret(org: string, { id, sealed }: SealedSecret): string {
    const key = `${org} ${id} ${sealed}`;
    let secret = this.opened.get(key);
    if (!secret) this.opened.set(key, (secret = this.vault.open(sealed, sealPlace(org, id))));
    return secret.reveal();
  }
}

function sealPlace(org: string, id: string) {
  return { table: 'webhook_secrets', row: id, org };
}
