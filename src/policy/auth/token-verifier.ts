import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { createRemoteJWKSet, customFetch, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { AccessTokens, type AccessGrant } from './access-tokens.js';
import { peekJwt } from './bearer.js';
import { CredentialStore, type OrgKeys } from './credential.store.js';
import { defaultOrg } from '../org.types.js';

const clockSkewSeconds = 60;
const maxLifetimeSeconds = 3_600;
const maxCandidates = 4;
const maxApprovedActions = 10;
const maxActionLength = 200;
const outsideAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];

/** Claims of a verified token. `org` owns the key that verified it. */
export interface VerifiedToken {
  readonly org: OrgKeys;
  readonly sub: string;
  readonly jti?: string;
  /** Seconds since the epoch. */
  readonly exp: number;
  /** True when `A2A_SECRET` verified the token; that secret belongs to no org. */
  readonly isOfDeployment?: boolean;
  /** True when the token names an audience, and so was issued for this gateway. */
  readonly isForAudience?: boolean;
  /** Verbs that a person approved where the token was issued. */
  readonly approvedActions?: readonly string[];
}

/** Reason why a token was refused; for the log and the audit, never for the caller. */
export class TokenRefused extends Error {
  constructor(
    readonly reason: 'malformed' | 'unknown_key' | 'signature' | 'claims' | 'tenant_mismatch',
    readonly org?: OrgKeys,
    /** Subject of the token, when its signature is valid. */
    readonly sub?: string,
  ) {
    super(`token refused: ${reason}`);
  }
}

interface OutsideIssuer {
  readonly orgSlug: string;
  readonly issuer: string;
  readonly keys: JWTVerifyGetKey;
}

/**
 * Verifies bearer tokens with jose. The unverified `org_domain` or `iss` selects the candidate keys; each key has one
 * algorithm; all five claims are required; the lifetime is at most one hour (AN-48…AN-50).
 */
@Injectable()
export class TokenVerifier {
  private readonly outside: OutsideIssuer[];
  /**
   * Secret for the signature check of an unknown org, so that it takes the same time as for a known one (abuse case
   * 8).
   */
  private readonly dummy = randomBytes(32);

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: CredentialStore,
    safeFetch: SafeFetch,
    private readonly publicUrl: PublicUrl,
    private readonly access: AccessTokens,
  ) {
    this.outside = settings.RIALTO_JWKS.map((entry) => {
      const [orgSlug, rest = ''] = splitOnce(entry, '=');
      const [issuer, jwks = ''] = splitOnce(rest, '|');
      const fetchKeys = safeFetch.asFetch({ deadlineMs: 5_000, maxBytes: 262_144 });
      return { orgSlug, issuer, keys: reachable(createRemoteJWKSet(new URL(jwks), { [customFetch]: fetchKeys })) };
    });
  }

  /** Returns the key behind an access token of this deployment; undefined for a token of another kind. */
  async verifyAccess(token: string): Promise<AccessGrant | undefined> {
    const peeked = peekJwt(token);
    if (!peeked || !this.access.isAccessToken(peeked.header) || this.issuerOf(peeked.claims)) return undefined;
    const grant = await this.access.verify(token);
    if (!grant) throw new TokenRefused('signature');
    return grant;
  }

  /**
   * Verifies a token. Throws TokenRefused, and `unavailable` while the keys of its issuer cannot be read.
   * @param lenient accepts tokens without iss and aud, but checks them when present (RIALTO_LEGACY_TOKENS).
   */
  async verify(token: string, lenient = false): Promise<VerifiedToken> {
    const peeked = peekJwt(token);
    if (!peeked) throw new TokenRefused('malformed');
    const { header, claims } = peeked;
    const outside = this.issuerOf(claims);
    if (outside) return this.verifyOutside(token, outside);
    // A lenient caller may have no org; its tokens then name none.
    const named = claims.org_domain ?? (lenient ? defaultOrg : undefined);
    if (header.alg !== 'HS256' || typeof named !== 'string') throw new TokenRefused('claims');
    const org = await this.store.orgKeys(named);
    const candidates = [
      ...(this.settings.A2A_SECRET ? [Buffer.from(this.settings.A2A_SECRET)] : []),
      ...(org?.secrets ?? []),
    ];
    for (const secret of candidates.length > 0 && org ? candidates.slice(0, maxCandidates) : [this.dummy]) {
      const payload = await verifyHs256(token, secret);
      if (!payload) continue;
      if (!org) break;
      const isOfDeployment = secret === candidates[0] && this.settings.A2A_SECRET !== undefined;
      return { ...(await this.accept(payload, org, { lenient })), isOfDeployment };
    }
    throw new TokenRefused(org ? 'signature' : 'unknown_key', org);
  }

  private issuerOf({ iss }: { readonly iss?: unknown }): OutsideIssuer | undefined {
    return this.outside.find(({ issuer }) => issuer === iss);
  }

  private async verifyOutside(token: string, issuer: OutsideIssuer): Promise<VerifiedToken> {
    const org = await this.store.orgKeys(issuer.orgSlug);
    if (!org) throw new TokenRefused('unknown_key');
    try {
      const { payload } = await jwtVerify(token, issuer.keys, {
        algorithms: outsideAlgorithms,
        clockTolerance: clockSkewSeconds,
      });
      return await this.accept(payload, org, { issuer: issuer.issuer });
    } catch (error) {
      throw error instanceof TokenRefused || error instanceof RialtoError ? error : new TokenRefused('signature', org);
    }
  }

  private async accept(
    payload: JWTPayload,
    org: OrgKeys,
    { issuer, lenient = false }: { issuer?: string; lenient?: boolean },
  ): Promise<VerifiedToken> {
    const { iss, aud, sub, iat, exp, jti, approvedActions } = payload;
    const now = systemClock.now() / 1_000;
    const audiences = typeof aud === 'string' ? [aud] : (aud ?? []);
    const sound =
      typeof sub === 'string' &&
      sub !== '' &&
      sub.length <= 256 &&
      typeof iat === 'number' &&
      Number.isFinite(iat) &&
      iat <= now + clockSkewSeconds &&
      typeof exp === 'number' &&
      Number.isFinite(exp) &&
      exp > now - clockSkewSeconds &&
      exp - iat <= maxLifetimeSeconds &&
      (issuer ? iss === issuer : iss === undefined ? lenient : this.settings.RIALTO_JWT_ISSUERS.includes(iss)) &&
      (audiences.length > 0 || (lenient && aud === undefined)) &&
      audiences.every((audience) => this.isAcceptedAudience(audience, issuer !== undefined)) &&
      (approvedActions === undefined || areActions(approvedActions));
    if (!sound) throw new TokenRefused('claims', org);
    if (await this.claimsAnotherOrg(payload, org, lenient)) throw new TokenRefused('tenant_mismatch', org, sub);
    return {
      org,
      sub,
      jti: typeof jti === 'string' ? jti : undefined,
      exp,
      isForAudience: audiences.length > 0,
      ...(approvedActions !== undefined && { approvedActions }),
    };
  }

  /**
   * Returns whether a token names another org than the owner of its key.
   * @param lenient accepts an id of the caller's own system that is not an org of this deployment.
   */
  private async claimsAnotherOrg(payload: JWTPayload, org: OrgKeys, lenient: boolean): Promise<boolean> {
    const { org_domain: domain, org_id: id } = payload;
    const isNamed = domain === undefined || (typeof domain === 'string' && isNameOf(org, domain));
    if (!isNamed) return true;
    if (id === undefined || id === org.id || id === org.slug) return false;
    return !lenient || typeof id !== 'string' || (await this.store.isOrg(id));
  }

  /**
   * Returns whether the audience is accepted. An MCP client asks its provider for a token for the address of the MCP
   * door (RFC 8707; MCP, authorization).
   */
  private isAcceptedAudience(audience: string, isOutside: boolean): boolean {
    const { RIALTO_JWT_AUDIENCE: names } = this.settings;
    return names.includes(audience) || (isOutside && audience === `${this.publicUrl.base}/mcp`);
  }
}

/** Makes a remote key set throw `unavailable` when it cannot be read: then no token was found to be wrong. */
function reachable(keys: JWTVerifyGetKey): JWTVerifyGetKey {
  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
      throw new RialtoError('unavailable', {
        message: 'the keys of the identity provider cannot be read now',
        cause: error,
      });
    }
  };
}

/** Checks the claim `approvedActions`: at most 10 names of verbs (AN-59). */
function areActions(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= maxApprovedActions &&
    value.every((name) => typeof name === 'string' && name !== '' && name.length <= maxActionLength)
  );
}

function isNameOf({ slug, domains }: OrgKeys, name: string): boolean {
  return name === slug || domains.includes(name.toLowerCase());
}

async function verifyHs256(token: string, secret: Uint8Array): Promise<JWTPayload | undefined> {
  try {
    return (await jwtVerify(token, secret, { algorithms: ['HS256'], clockTolerance: clockSkewSeconds })).payload;
  } catch {
    return undefined;
  }
}

function splitOnce(text: string, mark: string): [string, string?] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
