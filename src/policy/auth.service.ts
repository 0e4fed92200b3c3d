import { hash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { BoundedMap } from '../kernel/bounded-map.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { callerOf, lesserRole, type OrgRef, type Principal } from '../kernel/call-context.js';
import { isAuthConfigured, SETTINGS, type Settings } from '../platform/config/settings.js';
import { Notices } from '../platform/bus/notices.js';
import { bearerOf, isJwt } from './auth/bearer.js';
import { CredentialStore } from './auth/credential.store.js';
import { IdentityFinder, type AuthRequest } from './auth/identity-finder.js';
import { TokenRefusals } from './auth/token-refusals.js';

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
  /** True for a token that was issued for this gateway. */
  readonly isForAudience?: boolean;
  /** Verbs that a person approved where the token was issued (AN-59). */
  readonly approvedActions?: readonly string[];
}

/** How long a verified credential is cached. It limits how long a revoked credential still works (abuse case 6). */
const cacheMs = 4_000;
const maxCached = 10_000;

/** Authenticates requests: from headers and socket to an identity. Guards and doors call it. */
@Injectable()
export class AuthService {
  /** Replaced when a credential changes, so that a check in progress does not cache the earlier rights. */
  private cache = emptyCache();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: CredentialStore,
    private readonly finder: IdentityFinder,
    private readonly refusals: TokenRefusals,
    notices: Notices,
  ) {
    const forget = (): void => void (this.cache = emptyCache());
    notices.on('credentials.changed', forget);
    notices.onMissed(forget);
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
    this.refusals.countRefusal();
    throw new RialtoError('unauthenticated', {
      message: refusalOf(bearerOf(request)),
      hint:
        'send `Authorization: Bearer <token>`; ' +
        'in development the gateway logs the path of a token file when it is ready',
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
    const { cache } = this;
    const key = `standing ${org.id} ${principal.role} ${callerOf(principal)}`;
    const known = cache.get(key);
    if (known && known.until > systemClock.now()) return known.identity.principal;
    const rights = await this.rightsOf({ org, principal });
    if (!rights) return undefined;
    const role = lesserRole(principal.role, rights.role);
    const identity = { org, principal: { ...principal, role, groups: rights.groups } };
    cache.set(key, entryOf(identity));
    return identity.principal;
  }

  private async rightsOf({ org, principal }: Identity): Promise<Pick<Principal, 'role' | 'groups'> | undefined> {
    const { kind, id } = principal;
    if (kind === 'anonymous') return this.settings.RIALTO_DEV_ANONYMOUS ? principal : undefined;
    if (kind === 'user') return this.store.findMember(org.id, id, undefined);
    const key = await this.store.findKeyRights(org.id, principal);
    // Without a key, the principal used a bearer of the configuration, which is valid while the configuration has it.
    if (!key) return principal;
    return key.isRevoked ? undefined : key;
  }

  private async recognise(request: AuthRequest, lenient = false): Promise<Identity | undefined> {
    const token = bearerOf(request);
    if (token === undefined) return this.finder.anonymous(request);
    const key = `${lenient ? '?' : ''}${hash('sha256', token, 'base64')}`;
    const { cache } = this;
    const known = cache.get(key);
    if (known && known.until > systemClock.now()) return known.identity;
    const identity = await this.finder.byToken(request, token, lenient);
    if (identity) cache.set(key, entryOf(identity));
    return identity;
  }
}

function emptyCache() {
  return new BoundedMap<string, { identity: Identity; until: number }>(maxCached);
}

function entryOf(identity: Identity): { identity: Identity; until: number } {
  return { identity, until: Math.min(systemClock.now() + cacheMs, identity.expiresAt ?? Infinity) };
}

function refusalOf(token: string | undefined): string {
  if (token === undefined || (token.includes('.') && !isJwt(token))) return 'Authentication required';
  return isJwt(token) ? 'Invalid or expired A2A token' : 'Invalid API key';
}
