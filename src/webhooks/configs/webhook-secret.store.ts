import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { newId, type OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import type { Tx } from '../../platform/database/tx.js';
import { Vault, type Secret } from '../../platform/secrets/vault.js';
import { WebhookSecretEntity } from './webhook-secret.entity.js';

/** A secret as a claim of a delivery brings it. */
export interface SealedSecret {
  readonly id: string;
  readonly sealed: string;
}

/** Each makes the header longer; whoever changes more often than that ends the oldest. */
const maxLasting = 5;
const maxOpened = 1_000;

/** The secrets that sign for the org of a row, the newest first, as JSON. @param org a column. */
export const lastingSecrets = (
  org: string,
): string => `(select coalesce(json_agg(json_build_object('id', s.id, 'sealed', s.sealed)
  order by s.id desc), '[]') from webhook_secrets s where s.org_id = ${org} and (s.ends_at is null or s.ends_at > now()))`;

/** Signing secrets of orgs, sealed. */
@Injectable()
export class WebhookSecretStore {
  /** Each delivery needs one; by all that says what it opens to. */
  private readonly opened = new Map<string, Secret>();

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  /** Makes one; those before it sign on for so many seconds. Answers the plain secret, for the last time. */
  async make(tx: Tx, org: OrgId, graceSeconds: number): Promise<{ row: WebhookSecretEntity; secret: string }> {
    // One after the other: whoever did not see the other's would end it, or leave two without an end.
    await tx.manager.query(`select pg_advisory_xact_lock(hashtextextended('webhook-secrets:' || $1::text, 0))`, [org]);
    const id = newId();
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const secrets = tx.manager.getRepository(WebhookSecretEntity);
    await tx.manager.query(
      `update webhook_secrets set ends_at = now() + make_interval(secs => $2) where org_id = $1
       and (ends_at is null or ends_at > now() + make_interval(secs => $2))`,
      [org, graceSeconds],
    );
    await tx.manager.query(
      `delete from webhook_secrets where org_id = $1 and (ends_at <= now() or id not in (
         select id from webhook_secrets where org_id = $1 and (ends_at is null or ends_at > now()) order by id desc limit ${maxLasting - 1}))`,
      [org],
    );
    await secrets.insert({ id, orgId: org, sealed: this.vault.seal(secret, placeOf(org, id)), hint: secret.slice(-4) });
    return { row: await secrets.findOneByOrFail({ id }), secret };
  }

  /** Those that sign, the newest first. */
  list(org: OrgId): Promise<Pick<WebhookSecretEntity, 'id' | 'hint' | 'createdAt' | 'endsAt'>[]> {
    return this.pg.rows(
      'webhook-secrets',
      `select id, hint, created_at as "createdAt", ends_at as "endsAt" from webhook_secrets
       where org_id = $1 and (ends_at is null or ends_at > now()) order by id desc`,
      [org],
    );
  }

  /** The plain secrets that sign, the newest first. */
  async signing(org: OrgId): Promise<string[]> {
    const [row] = await this.pg.rows<{ secrets: SealedSecret[] }>(
      'webhook-secrets-signing',
      `select ${lastingSecrets('$1')} as secrets`,
      [org],
    );
    return row!.secrets.map((sealed) => this.open(org, sealed));
  }

  /** False when the org has no such secret. */
  async end(tx: Tx, org: OrgId, id: string): Promise<boolean> {
    const { affected } = await tx.manager.getRepository(WebhookSecretEntity).delete({ id, orgId: org });
    return affected === 1;
  }

  /** The plain secret of one that a claim brought. Throws `unavailable` and `internal` as the vault does. */
  open(org: string, { id, sealed }: SealedSecret): string {
    const key = `${org} ${id} ${sealed}`;
    let secret = this.opened.get(key);
    if (!secret) {
      if (this.opened.size >= maxOpened) this.opened.clear();
      this.opened.set(key, (secret = this.vault.open(sealed, placeOf(org, id))));
    }
    return secret.reveal();
  }
}

function placeOf(org: string, id: string) {
  return { table: 'webhook_secrets', row: id, org };
}
