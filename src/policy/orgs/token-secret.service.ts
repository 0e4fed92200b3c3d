import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { OrgService } from '../org.service.js';
import type { RevokeToken, RotateSecret } from '../org.types.js';
import { TokenSecretStore } from './token-secret.store.js';

/** Longer than any token lives, in milliseconds. */
const revokedMs = 3_700_000;

/** Administers the secrets of orgs for HS256 tokens, and revokes single tokens. */
@Injectable()
export class TokenSecretService {
  constructor(
    private readonly orgs: OrgService,
    private readonly store: TokenSecretStore,
    private readonly admin: AdminActs,
  ) {}

  /**
   * Creates a new secret for HS256 tokens of an org and returns it once. The previous secret stays valid for the
   * grace period.
   */
  rotate(
    ctx: CallContext,
    slug: string,
    { graceSeconds }: RotateSecret,
  ): Promise<{ secret: string; graceSeconds: number }> {
    return this.admin.prepareAndWrite(
      ctx,
      'org.rotate-secret',
      { org: slug },
      () => this.orgs.visibleOrg(ctx, slug),
      async (tx, org) => {
        const secret = randomBytes(48).toString('base64url');
        await this.store.rotate(tx, org.id, secret, graceSeconds * 1_000);
        return { secret, graceSeconds };
      },
    );
  }

  revokeToken(ctx: CallContext, { jti, expiresAt }: RevokeToken): Promise<void> {
    return this.admin.write(ctx, 'token.revoke', { jti }, (tx) => {
      const until = expiresAt ? new Date(expiresAt) : new Date(systemClock.now() + revokedMs);
      return this.store.revoke(tx, ctx.org.id, jti, until);
    });
  }
}
