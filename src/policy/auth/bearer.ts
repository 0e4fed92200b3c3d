import type { IncomingMessage } from 'node:http';
import { containsUnstorable } from '../../protocol/jsonrpc.js';

const maxTokenLength = 8_192;
const tokenShape = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Returns the bearer token of a request; undefined when it has none or a malformed one. Valid: exactly one
 * Authorization header, scheme Bearer, one token of at most 8 KiB (RFC 6750 section 2.1). Takes linear time in the
 * length of the header.
 */
export function bearerOf(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string | undefined {
  const header = request.headers.authorization;
  if (header === undefined || header.length > maxTokenLength + 7) return undefined;
  if (countHeader(request.rawHeaders, 'authorization') > 1) return undefined;
  if (header.slice(0, 7).toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7);
  return tokenShape.test(token) ? token : undefined;
}

function countHeader(rawHeaders: readonly string[] | undefined, name: string): number {
  let count = 0;
  for (let index = 0; index < (rawHeaders?.length ?? 0); index += 2)
    if (rawHeaders![index]!.toLowerCase() === name) count++;
  return count;
}

const part = /^[A-Za-z0-9_-]+$/;

/**
 * Returns the unverified header and claims of a compact JWS, to select candidate keys; undefined for any other text.
 * Each part must be canonical base64url, so that a revoked token has no second spelling.
 */
export function peekJwt(
  token: string,
): { header: Record<string, unknown>; claims: Record<string, unknown> } | undefined {
  const parts = token.split('.');
  if (
    parts.length !== 3 ||
    !parts.every((text) => part.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text)
  )
    return undefined;
  try {
    const payload = Buffer.from(parts[1]!, 'base64url').toString('utf8');
    const header: unknown = JSON.parse(Buffer.from(parts[0]!, 'base64url').toString('utf8'));
    const claims: unknown = JSON.parse(payload);
    if (
      !isRecord(header) ||
      !isRecord(claims) ||
      containsUnstorable(claims) ||
      ['org_domain', 'org_id', 'sub'].some((name) => occurs(payload, name) > 1)
    )
      return undefined;
    return { header, claims };
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Counts how often a member name occurs: of two equal members JSON.parse takes the last, other parsers may take the
 * first.
 */
function occurs(json: string, name: string): number {
  return json.split(`"${name}"`).length - 1;
}

/** Returns whether a credential has the three parts of a JSON Web Token. */
export function isJwt(token: string): boolean {
  return token.split('.').length === 3;
}
