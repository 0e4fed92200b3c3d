import { Inject, Injectable } from '@nestjs/common';
import { lesserRole, type Principal } from '../../kernel/call-context.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { isAllowedOrigin, isLoopback } from '../../platform/http/server/origin-check.js';
import { isSameSecret } from '../../platform/secrets/same-secret.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import type { Identity } from '../auth.service.js';
import { defaultOrg } from '../org.types.js';
import { apiKeyPrefix, hashKey, holderOf } from './api-key.js';
import { isJwt, type bearerOf } from './bearer.js';
import { CredentialStore, type KeyBearer } from './credential.store.js';
import { runJwtStrategy } from '../library-internals/passport-jwt.js';
import { TokenRefusals } from './token-refusals.js';
import { TokenRefused, TokenVerifier } from './token-verifier.js';

export type AuthRequest = Parameters<typeof bearerOf>[0] & { socket: { remoteAddress?: string } };

const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** Finds the owner of a credential: an API key, a token, the bearer of the configuration, or none. */
@Injectable()
export class IdentityFinder {
  private warnedAnonymous = false;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: CredentialStore,
    private readonly verifier: TokenVerifier,
    private readonly refusals: TokenRefusals,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Returns the owner of a credential; undefined for one that is not valid. */
  async byToken(request: AuthRequest, token: string, lenient: boolean): Promise<Identity | undefined> {
    if (token.startsWith(apiKeyPrefix)) return this.byKey(token);
    if (isJwt(token)) return this.byJwt(request, token, lenient);
    return this.byLegacyBearer(token);
  }

  private async byKey(token: string): Promise<Identity | undefined> {
    const bearer = await this.store.bearerOfKey(hashKey(token));
    if (!bearer) return undefined;
    const { expiresAt } = bearer;
    return { ...ownerOf(bearer), ...(expiresAt && { expiresAt: expiresAt.getTime() }) };
  }

  private async byJwt(request: AuthRequest, token: string, lenient: boolean): Promise<Identity | undefined> {
    try {
      const access = await this.verifier.verifyAccess(token);
      if (access)
        return { ...ownerOf(access.key), expiresAt: access.exp * 1_000, tokenId: access.jti, isForAudience: true };
      const verified = await runJwtStrategy(request, token, (text) => this.verifier.verify(text, lenient));
      const { org, sub, jti, exp, isOfDeployment, isForAudience, approvedActions } = verified;
      const member = await this.store.findMember(org.id, sub, jti);
      if (!member || member.revoked) throw new TokenRefused(member ? 'claims' : 'tenant_mismatch', org, sub);
      // Holders of the secret of all orgs are not admins of the orgs, unless RIALTO_A2A_SECRET_ADMINS is set.
      const most = isOfDeployment && !this.settings.RIALTO_A2A_SECRET_ADMINS ? 'member' : 'admin';
      const role = lesserRole(member.role, most);
      const principal: Principal = { kind: 'user', id: sub, role, groups: member.groups };
      return {
        org: { id: org.id, slug: org.slug, trustTier: org.trustTier },
        principal,
        expiresAt: exp * 1_000,
        ...(jti !== undefined && { tokenId: jti }),
        ...(isForAudience && { isForAudience }),
        ...(approvedActions && { approvedActions }),
      };
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      await this.refusals.recordRefusal(error, token);
      return undefined;
    }
  }

  private async byLegacyBearer(token: string): Promise<Identity | undefined> {
    const { legacyBearer } = this.settings;
    if (!legacyBearer || !isSameSecret(token, legacyBearer)) return undefined;
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'service', id: 'api-key-env', role: 'member', groups: [] } };
  }

  /** Returns the anonymous identity of a request without a credential; undefined when it needs one. */
  anonymous(request: AuthRequest): Promise<Identity | undefined> | undefined {
    return this.mayBeAnonymous(request) ? this.anonymousIdentity() : undefined;
  }

  /**
   * Returns whether a request may be anonymous: it comes from a program on this machine, not from a browser page of
   * another site and not through a proxy.
   */
  private mayBeAnonymous({ headers, socket }: AuthRequest): boolean {
    return (
      this.settings.RIALTO_DEV_ANONYMOUS &&
      headers.authorization === undefined &&
      isLoopback(socket.remoteAddress) &&
      isAllowedOrigin(headers, { loopback: true }) &&
      proxyHeaders.every((name) => headers[name] === undefined)
    );
  }

  private async anonymousIdentity(): Promise<Identity | undefined> {
    if (!this.warnedAnonymous) {
      this.warnedAnonymous = true;
      this.log.warn('RIALTO_DEV_ANONYMOUS is set: callers on loopback need no token');
    }
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'anonymous', id: 'anonymous', role: 'member', groups: [] } };
  }
}

/** The org and principal of an API key, and of the access tokens that it got. */
function ownerOf({ org, name, role, groups, agent }: KeyBearer): Pick<Identity, 'org' | 'principal'> {
  return { org, principal: { ...holderOf({ agent, name }), role, groups } };
}
