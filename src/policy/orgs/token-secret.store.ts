import { Injectable } from '@nestjs/common';
import { IsNull } from 'typeorm';
import { newId, type OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import { Pg } from '../../platform/database/pg.js';
import { later } from '../../platform/database/sql.js';
import type { Tx } from '../../platform/database/tx.js';
import { Vault } from '../../platform/secrets/vault.js';
import { OrgSecretEntity, RevokedTokenEntity } from './org.entity.js';

/** Writes the secrets of orgs for HS256 tokens, and the revocations of single tokens. */
@Injectable()
export class TokenSecretStore {
  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
    private readonly notices: Notices,
  ) {}

  /** Stores a new secret. The previous one stays valid for `graceMs`, by the clock of the database. */
  async rotate(tx: Tx, orgId: OrgId, secret: string, graceMs: number): Promise<void> {
    const secrets = tx.manager.getRepository(OrgSecretEntity);
    const id = newId();
    await secrets.update({ orgId, retiresAt: IsNull() }, { retiresAt: () => later(graceMs) });
    await secrets.insert({
      id,
      orgId,
      sealed: this.vault.seal(secret, { table: 'org_secrets', row: id, org: orgId }),
    });
    this.notices.tell(tx, 'credentials.changed', { orgId, kind: 'user' });
  }

  /** Revokes a token until it expires. */
  async revoke(tx: Tx, orgId: OrgId, jti: string, expiresAt: Date): Promise<void> {
    await tx.manager.getRepository(RevokedTokenEntity).upsert({ orgId, jti, expiresAt }, ['orgId', 'jti']);
    this.notices.tell(tx, 'credentials.changed', { orgId, tokenId: jti });
  }

  /**
   * Deletes revocations of expired tokens and retired secrets. Both stay some time longer, because the clocks of
   * processes differ.
   */
  async dropExpired(): Promise<void> {
    await this.pg.rows(
      'revocations-expired',
      `delete from revoked_tokens where expires_at < now() - interval '1 hour'`,
    );
    await this.pg.rows('secrets-retired', `delete from org_secrets where retires_at < now() - interval '1 day'`);
  }
}
