import { RialtoError } from '../../kernel/errors.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { PushConfig } from '../../protocol/a2a/request/operations.js';

/** Throws `url_not_allowed` for an address that may not be called, `invalid_params` for what no header can hold. */
export function requirePostable(
  safeFetch: SafeFetch,
  { url, token, authentication }: Pick<PushConfig, 'url' | 'token' | 'authentication'>,
): void {
  safeFetch.check(url);
  const violations = [
    ...(isHeaderText(token) ? [] : ['token']),
    ...(authentication && !isToken(authentication.scheme) ? ['authentication.scheme'] : []),
    ...(isHeaderText(authentication?.credentials) ? [] : ['authentication.credentials']),
  ].map((field) => ({ field, description: 'must not contain what no HTTP header can hold' }));
  if (violations.length > 0) throw new RialtoError('invalid_params', { violations });
}

/** Printable ASCII, which is what leaves this process in a header (platform/http/safe-headers.ts). */
function isHeaderText(text = ''): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

function isToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}
