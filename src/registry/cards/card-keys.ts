import { createHash } from 'node:crypto';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';

/** A public key that may have signed a card, with only the required members of its JWK. */
export interface CardKey {
  readonly kid: string;
  /** JWK thumbprint: RFC 7638, SHA-256, base64url. */
  readonly thumbprint: string;
  readonly jwk: Readonly<Record<string, string>>;
}

/** The keys of a key set, or the reason why it has none. `isTransient`: a later attempt may succeed. */
export type KeySet =
  | { readonly ok: true; readonly keys: readonly CardKey[] }
  | { readonly ok: false; readonly reason: string; readonly isTransient: boolean };

const deadlineMs = 2_000;
const maxBytes = 65_536;
const maxKeys = 100;
/** Members of a JWK that its thumbprint covers (RFC 7638 section 3.2, RFC 8037 section 2). */
const required = new Map([
  ['EC', ['crv', 'kty', 'x', 'y']],
  ['OKP', ['crv', 'kty', 'x']],
  ['RSA', ['e', 'kty', 'n']],
]);

/**
 * Returns the public key of a JWK; undefined for a symmetric, malformed or encryption key and for a key without id.
 */
export function cardKeyOf(jwk: unknown): CardKey | undefined {
  if (!isJsonObject(jwk) || typeof jwk.kid !== 'string' || jwk.kid === '') return undefined;
  if (jwk.use !== undefined && jwk.use !== 'sig') return undefined;
  const names = typeof jwk.kty === 'string' ? required.get(jwk.kty) : undefined;
  if (!names || names.some((name) => typeof jwk[name] !== 'string')) return undefined;
  const members = Object.fromEntries(names.map((name) => [name, jwk[name] as string]));
  const thumbprint = createHash('sha256').update(canonicalJson(members)).digest('base64url');
  return { kid: jwk.kid, thumbprint, jwk: { ...members, ...(typeof jwk.alg === 'string' && { alg: jwk.alg }) } };
}

/**
 * Fetches the key set that the `jku` of a signature names: only from one of `origins`, without redirects, at most 64
 * KiB in two seconds. Throws `canceled`.
 */
export async function fetchKeySet(
  safeFetch: SafeFetch,
  jku: string,
  origins: readonly string[],
  signal?: AbortSignal,
): Promise<KeySet> {
  if (!URL.canParse(jku) || !origins.includes(new URL(jku).origin))
    return { ok: false, reason: 'its jku has another origin than the card', isTransient: false };
  try {
    const headers = { accept: 'application/jwk-set+json, application/json' };
    const answer = await safeFetch.request({ method: 'GET', url: jku, headers, deadlineMs, maxBytes, signal });
    if (answer.status !== 200) return unreadable(`HTTP ${answer.status}`);
    const parsed = parseJson(answer.body.toString('utf8'));
    if (!parsed.ok || !isJsonObject(parsed.value) || !Array.isArray(parsed.value.keys)) return unreadable('not a JWKS');
    return { ok: true, keys: keysOf(parsed.value) };
  } catch (error) {
    const { code } = RialtoError.from(error);
    if (code === 'canceled' || code === 'internal') throw error;
    if (code === 'url_not_allowed')
      return { ok: false, reason: 'the URL of its jku is not allowed', isTransient: false };
    return unreadable(code);
  }
}

function keysOf({ keys }: JsonObject): CardKey[] {
  return (keys as unknown[])
    .slice(0, maxKeys)
    .map(cardKeyOf)
    .filter((key) => key !== undefined);
}

function unreadable(what: string): KeySet {
  return { ok: false, reason: `the keys of its jku cannot be read (${what})`, isTransient: true };
}
