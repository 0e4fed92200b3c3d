import { SignJWT } from 'jose';
import type { HopHeaders } from '../transports/remote-hop.js';
import { isSameOrigin } from '../transports/endpoint-choice.js';

const tokenLife = '15m';

/** Credentials that the client can use; all optional. */
export interface Proofs {
  readonly apiKey?: string;
  readonly secret?: string;
  readonly userEmail?: string;
  readonly orgDomain?: string;
  readonly issuer: string;
  readonly audience: string;
}

export type Identity = 'apiKey' | 'token' | 'none';

/** Returns the kinds of credential to try, in order; the next one is used when the agent refuses (AN-38). */
export function identitiesOf({ apiKey, secret, userEmail }: Proofs): Identity[] {
  const given: Identity[] = [
    ...(apiKey ? (['apiKey'] as const) : []),
    ...(secret && userEmail ? (['token'] as const) : []),
  ];
  return given.length > 0 ? given : ['none'];
}

/** Signs an HS256 token of 15 minutes for one request (AN-38, AN-99). */
async function signToken({ secret = '', userEmail = '', orgDomain, issuer, audience }: Proofs): Promise<string> {
  return new SignJWT(orgDomain === undefined ? {} : { org_domain: orgDomain })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(userEmail)
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime(tokenLife)
    .sign(new TextEncoder().encode(secret));
}

/** Sends the credential as a header, only to the origin that the client was made for (abuse 18). */
export class ClientHeaders implements HopHeaders {
  constructor(
    private readonly agentUrl: string,
    private readonly proofs: Proofs,
    private readonly identity: Identity,
    private readonly extra: Record<string, string> = {},
  ) {}

  async headersFor(url: string): Promise<Record<string, string>> {
    if (this.identity === 'none' || !isSameOrigin(url, this.agentUrl)) return this.extra;
    const proof = this.identity === 'apiKey' ? this.proofs.apiKey! : await signToken(this.proofs);
    return { ...this.extra, authorization: `Bearer ${proof}` };
  }

  renew(): boolean {
    return false;
  }
}
