import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { isUuid } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { SigningKeys } from '../../platform/secrets/signing-keys.js';
import { apiKeyPrefix, hashKey } from './api-key.js';
import { peekJwt } from './bearer.js';
import { CredentialStore, type KeyBearer } from './credential.store.js';

/** Longest life of an access token in seconds (RI-50). */
const lifeSeconds = 900;
/** `typ` of an access token (RFC 9068 section 2.1): nothing else that the key signs has it. */
const tokenType = 'at+jwt';

export interface IssuedToken {
  readonly token: string;
  readonly expiresIn: number;
}

/** An API key that an access token stands for, and the token's own facts. */
export interface AccessGrant {
  readonly key: KeyBearer;
  readonly jti: string;
  /** Seconds since the epoch. */
  readonly exp: number;
}

/**
 * Access tokens of 15 minutes that the deployment signs with Ed25519 (EdDSA). A client gets one for its API key and
 * sends the key itself to the token endpoint only. A token has the rights of its key as they are now, and ends with it.
 */
@Injectable()
export class AccessTokens {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly keys: SigningKeys,
    private readonly store: CredentialStore,
  ) {}

  /** True for a token of this kind, before its signature is checked. */
  isAccessToken(header: Readonly<Record<string, unknown>>): boolean {
    return header.alg === 'EdDSA' && header.typ === tokenType;
  }

  /**
   * Issues a token to a client; undefined for credentials that are not valid.
   * @param id of the API key. @param secret the API key.
   */
  async issue(id: string, secret: string): Promise<IssuedToken | undefined> {
    if (!secret.startsWith(apiKeyPrefix)) return undefined;
    const key = await this.store.bearerOfKey(hashKey(secret));
    if (key?.id !== id) return undefined;
    const now = Math.floor(systemClock.now() / 1_000);
    const ends = key.expiresAt ? Math.floor(key.expiresAt.getTime() / 1_000) : Infinity;
    const exp = Math.min(now + lifeSeconds, ends);
    const claims = {
      iss: this.settings.RIALTO_JWT_ISSUERS[0],
      aud: this.settings.RIALTO_JWT_AUDIENCE[0],
      sub: key.id,
      client_id: key.id,
      org_domain: key.org.slug,
      iat: now,
      exp,
      jti: randomUUID(),
    };
    const { kid, sign } = await this.keys.current();
    const signed = [{ alg: 'EdDSA', typ: tokenType, kid }, claims].map(encoded).join('.');
    return { token: `${signed}.${sign(Buffer.from(signed))}`, expiresIn: exp - now };
  }

  /**
   * Verifies a token and finds its key. Undefined for a token that is forged, over, revoked, for another deployment, or
   * of a key that is not valid any more.
   */
  async verify(token: string): Promise<AccessGrant | undefined> {
    const peeked = peekJwt(token);
    if (!peeked || !this.isAccessToken(peeked.header)) return undefined;
    const { kid } = peeked.header;
    const { iss, aud, sub, exp, jti, org_domain: org } = peeked.claims;
    const isSigned = typeof kid === 'string' && (await this.isSigned(token, kid));
    if (!isSigned || iss !== this.settings.RIALTO_JWT_ISSUERS[0]) return undefined;
    if (aud !== this.settings.RIALTO_JWT_AUDIENCE[0]) return undefined;
    if (typeof exp !== 'number' || exp * 1_000 <= systemClock.now()) return undefined;
    if (typeof sub !== 'string' || !isUuid(sub) || typeof jti !== 'string') return undefined;
    const key = await this.store.bearerOfToken(sub, jti);
    return key?.org.slug === org ? { key: key!, jti, exp } : undefined;
  }

  /** Only keys that are published now verify tokens: a key that was rotated out ends with its time of grace. */
  private async isSigned(token: string, kid: string): Promise<boolean> {
    const known = await this.keys.publicKeys();
    if (!known.some((key) => key.kid === kid)) return false;
    const end = token.lastIndexOf('.');
    return (await this.keys.verifier()(Buffer.from(token.slice(0, end)), kid, token.slice(end + 1))) === 'valid';
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
