import { hash, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { callerOf, lesserRole, type OrgRef, type Principal } from '../kernel/call-context.js';
import { isAuthConfigured, SETTINGS, type Settings } from '../platform/config/settings.js';
import { Notices } from '../platform/bus/notices.js';
import { isAllowedOrigin, isLoopback } from '../platform/http/server/origin-check.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { bearerOf } from './auth/bearer.js';
import { CredentialStore } from './auth/credential.store.js';
import { runJwtStrategy } from './auth/jwt.strategy.js';
import { defaultOrg } from './org.types.js';
import { TokenRefusals } from './auth/token-refusals.js';
import { TokenRefused, TokenVerifier } from './auth/token-verifier.js';

export { defaultOrg } from './org.types.js';
export { reachableAt } from '../platform/http/server/origin-check.js';

/** Who a request comes from: the answer of `authenticate`. */
export interface Identity {
  readonly org: OrgRef;
  readonly principal: Principal;
  /** Milliseconds since the epoch; streams end then. */
  readonly expiresAt?: number;
  /** Of a token that has one: it can be revoked by it. */
  readonly tokenId?: string;
}

type AuthRequest = Parameters<typeof bearerOf>[0] & { socket: { remoteAddress?: string } };

export const apiKeyPrefix = 'rlt_';
/** How long a verified credential is believed without asking the rows again: the bound of a revocation (abuse case 6). */
const believedMs = 4_000;
const maxCached = 10_000;
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** Authentication as a plain call: headers and socket to an identity. Guards and hot doors wrap it. */
@Injectable()
export class AuthService {
  private readonly cache = new Map<string, { identity: Identity; until: number }>();
  private warnedAnonymous = false;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: CredentialStore,
    private readonly verifier: TokenVerifier,
    private readonly refusals: TokenRefusals,
    notices: Notices,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    notices.on('credentials.changed', () => this.cache.clear());
    notices.onMissed(() => this.cache.clear());
  }

  /** When false, every agent door answers 503 (AN-43, AN-95). */
  get configured(): boolean {
    return isAuthConfigured(this.settings);
  }

  /**
   * Throws `auth_not_configured` or `unauthenticated`, the latter with a text for what was sent, never for why it failed (AN-49).
   * @param lenient tokens of older callers may lack iss and aud.
   */
  async authenticate(request: AuthRequest, lenient = false): Promise<Identity> {
    if (!this.configured)
      throw new RialtoError('auth_not_configured', {
        message: 'set A2A_SECRET (at least 32 bytes) to open the agent doors',
      });
    const identity = await this.recognise(request, lenient);
    if (identity) return identity;
    this.refusals.count();
    throw new RialtoError('unauthenticated', {
      message: refusalOf(bearerOf(request)),
      hint: 'send `Authorization: Bearer <token>`; in development it lies in the file that the gateway names when it is ready',
    });
  }

  /** Whether somebody known is calling. */
  async knows(request: AuthRequest): Promise<boolean> {
    return (await this.whoIs(request)) !== undefined;
  }

  /** The answer of `authenticate` without its errors and counts, for what is open to anyone. */
  async whoIs(request: AuthRequest): Promise<Identity | undefined> {
    return this.configured ? this.recognise(request) : undefined;
  }

  /**
   * Somebody who asked earlier, with the role of today, if that is not more than it was, and its groups; undefined when nothing lets it in any more: for work that is begun
   * or goes on when nobody shows a credential (abuse case 17). Believed as long as a credential is.
   */
  async standing({ org, principal }: Pick<Identity, 'org' | 'principal'>): Promise<Principal | undefined> {
    const key = `standing ${org.id} ${principal.role} ${callerOf(principal)}`;
    const known = this.cache.get(key);
    if (known && known.until > systemClock.now()) return known.identity.principal;
    const rights = await this.rightsOf({ org, principal });
    if (!rights) return undefined;
    const role = lesserRole(principal.role, rights.role);
    const identity = { org, principal: { ...principal, role, groups: rights.groups } };
    this.remember(key, identity);
    return identity.principal;
  }

  private async rightsOf({ org, principal }: Identity): Promise<Pick<Principal, 'role' | 'groups'> | undefined> {
    const { kind, id } = principal;
    if (kind === 'anonymous') return this.settings.RIALTO_DEV_ANONYMOUS ? principal : undefined;
    if (kind === 'user') return this.store.member(org.id, id, undefined);
    const key = await this.store.keyOf(org.id, principal);
    // Without a key it came by a bearer of the configuration, which nobody revokes while it stands there.
    if (!key) return principal;
    return key.isRevoked ? undefined : key;
  }

  private async recognise(request: AuthRequest, lenient = false): Promise<Identity | undefined> {
    const token = bearerOf(request);
    if (token === undefined) return this.mayBeAnonymous(request) ? this.anonymous() : undefined;
    const key = `${lenient ? '?' : ''}${hash('sha256', token, 'base64')}`;
    const known = this.cache.get(key);
    if (known && known.until > systemClock.now()) return known.identity;
    const identity = await this.identify(request, token, lenient);
    if (identity) this.remember(key, identity);
    return identity;
  }

  /** A program of this machine that calls by itself: no page in its browser, no proxy that speaks for others. */
  private mayBeAnonymous({ headers, socket }: AuthRequest): boolean {
    return (
      this.settings.RIALTO_DEV_ANONYMOUS &&
      headers.authorization === undefined &&
      isLoopback(socket.remoteAddress) &&
      isAllowedOrigin(headers, { loopback: true }) &&
      proxyHeaders.every((name) => headers[name] === undefined)
    );
  }

  private async identify(request: AuthRequest, token: string, lenient: boolean): Promise<Identity | undefined> {
    if (token.startsWith(apiKeyPrefix)) return this.byKey(token);
    if (isJwt(token)) return this.byJwt(request, token, lenient);
    return this.byLegacyBearer(token);
  }

  private async byKey(token: string): Promise<Identity | undefined> {
    const bearer = await this.store.bearerOfKey(hashKey(token));
    if (!bearer) return undefined;
    const { org, name, role, groups, agent, expiresAt } = bearer;
    const principal: Principal = { ...holderOf({ agent, name }), role, groups };
    return { org, principal, ...(expiresAt && { expiresAt: expiresAt.getTime() }) };
  }

  private async byJwt(request: AuthRequest, token: string, lenient: boolean): Promise<Identity | undefined> {
    try {
      const { org, sub, jti, exp, isOfDeployment } = await runJwtStrategy(request, (text) =>
        this.verifier.verify(text, lenient),
      );
      const member = await this.store.member(org.id, sub, jti);
      if (!member || member.revoked) throw new TokenRefused(member ? 'claims' : 'tenant_mismatch', org, sub);
      // Whoever holds the secret of all orgs is none of their admins, unless the operator says so.
      const most = isOfDeployment && !this.settings.RIALTO_A2A_SECRET_ADMINS ? 'member' : 'admin';
      const role = lesserRole(member.role, most);
      const principal: Principal = { kind: 'user', id: sub, role, groups: member.groups };
      const identity = { org: { id: org.id, slug: org.slug }, principal, expiresAt: exp * 1_000 };
      return jti === undefined ? identity : { ...identity, tokenId: jti };
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      await this.refusals.remember(error, token);
      return undefined;
    }
  }

  private async byLegacyBearer(token: string): Promise<Identity | undefined> {
    const { legacyBearer } = this.settings;
    if (!legacyBearer || !timingSafeEqual(sha256(token), sha256(legacyBearer))) return undefined;
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'service', id: 'api-key-env', role: 'member', groups: [] } };
  }

  private async anonymous(): Promise<Identity | undefined> {
    if (!this.warnedAnonymous) {
      this.warnedAnonymous = true;
      this.log.warn('RIALTO_DEV_ANONYMOUS: callers on loopback are let in without a token');
    }
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'anonymous', id: 'anonymous', role: 'member', groups: [] } };
  }

  private remember(key: string, identity: Identity): void {
    if (this.cache.size >= maxCached) this.cache.delete(this.cache.keys().next().value!);
    this.cache.set(key, { identity, until: Math.min(systemClock.now() + believedMs, identity.expiresAt ?? Infinity) });
  }
}

function isJwt(token: string): boolean {
  return token.split('.').length === 3;
}

function refusalOf(token: string | undefined): string {
  if (token === undefined || (token.includes('.') && !isJwt(token))) return 'Authentication required';
  return isJwt(token) ? 'Invalid or expired A2A token' : 'Invalid API key';
}

/** Whom a key makes of its bearer: the agent that it was made for, or itself. */
export function holderOf({ agent, name }: { agent: string | null; name: string }): Pick<Principal, 'kind' | 'id'> {
  return { kind: agent ? 'agent' : 'service', id: agent ?? name };
}

/** What is stored of an API key. */
export function hashKey(key: string): string {
  return hash('sha256', key, 'hex');
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
