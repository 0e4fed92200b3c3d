import { hash } from 'node:crypto';
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
import { isSameSecret } from '../platform/secrets/same-secret.js';

export { defaultOrg } from './org.types.js';
export { reachableAt } from '../platform/http/server/origin-check.js';

/** The org and principal of a request, as `authenticate` returns them. */
export interface Identity {
  readonly org: OrgRef;
  readonly principal: Principal;
  /** Milliseconds since the epoch. Streams of the caller end at this time. */
  readonly expiresAt?: number;
  /** The `jti` of a token that has one. Revocations name it. */
  readonly tokenId?: string;
}

type AuthRequest = Parameters<typeof bearerOf>[0] & { socket: { remoteAddress?: string } };

export const apiKeyPrefix = 'rlt_';
/** How long a verified credential is cached. It limits how long a revoked credential still works (abuse case 6). */
const cacheMs = 4_000;
const maxCached = 10_000;
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];

/** Authenticates requests: from headers and socket to an identity. Guards and doors call it. */
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

  /** True when authentication is configured. While it is false, every agent door answers 503 (AN-43, AN-95). */
  get configured(): boolean {
    return isAuthConfigured(this.settings);
  }

  /**
   * Returns the identity of a request. Throws `auth_not_configured` or `unauthenticated`. The message of the latter
   * depends on the kind of credential, never on the reason of the failure (AN-49).
   * @param lenient accepts tokens of older callers without iss and aud.
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
      hint: 'send `Authorization: Bearer <token>`; in development the gateway logs the path of a token file when it is ready',
    });
  }

  /** Returns whether a request has a valid credential. */
  async knows(request: AuthRequest): Promise<boolean> {
    return (await this.whoIs(request)) !== undefined;
  }

  /**
   * Returns the identity of a request without errors and without counting failures, for routes that are open to all
   * callers.
   */
  async whoIs(request: AuthRequest): Promise<Identity | undefined> {
    return this.configured ? this.recognise(request) : undefined;
  }

  /**
   * Returns the current rights of a principal that sent work earlier: its groups, and its current role but at most
   * its earlier one. Undefined when it has no access any more. Used for work that starts or continues without a
   * credential (abuse case 17). The result is cached as long as a credential.
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
    // Without a key, the principal used a bearer of the configuration, which is valid while the configuration has it.
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
      // Holders of the secret of all orgs are not admins of the orgs, unless RIALTO_A2A_SECRET_ADMINS is set.
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
    if (!legacyBearer || !isSameSecret(token, legacyBearer)) return undefined;
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'service', id: 'api-key-env', role: 'member', groups: [] } };
  }

  private async anonymous(): Promise<Identity | undefined> {
    if (!this.warnedAnonymous) {
      this.warnedAnonymous = true;
      this.log.warn('RIALTO_DEV_ANONYMOUS is set: callers on loopback need no token');
    }
    const org = await this.store.orgBySlug(defaultOrg);
    return org && { org, principal: { kind: 'anonymous', id: 'anonymous', role: 'member', groups: [] } };
  }

  private remember(key: string, identity: Identity): void {
    if (this.cache.size >= maxCached) this.cache.delete(this.cache.keys().next().value!);
    this.cache.set(key, { identity, until: Math.min(systemClock.now() + cacheMs, identity.expiresAt ?? Infinity) });
  }
}

function isJwt(token: string): boolean {
  return token.split('.').length === 3;
}

function refusalOf(token: string | undefined): string {
  if (token === undefined || (token.includes('.') && !isJwt(token))) return 'Authentication required';
  return isJwt(token) ? 'Invalid or expired A2A token' : 'Invalid API key';
}

/**
 * Returns the principal of an API key: the agent that the key was made for, else a service with the name of the key.
 */
export function holderOf({ agent, name }: { agent: string | null; name: string }): Pick<Principal, 'kind' | 'id'> {
  return { kind: agent ? 'agent' : 'service', id: agent ?? name };
}

/** Returns the stored form of an API key. */
export function hashKey(key: string): string {
  return hash('sha256', key, 'hex');
}
