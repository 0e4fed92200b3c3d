import { RialtoError } from '../../kernel/errors.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { PushConfig } from '../../protocol/a2a/request/operations.js';

/**
 * Checks that a configuration can be posted to. Throws `url_not_allowed` for an address that may not be called,
 * `invalid_params` for a value that does not fit into an HTTP header.
 */
export function requirePostable(
  safeFetch: SafeFetch,
  { url, token, authentication }: Pick<PushConfig, 'url' | 'token' | 'authentication'>,
): void {
  safeFetch.checkUrl(url);
  const violations = [
    ...(isHeaderText(token) ? [] : ['token']),
    ...(authentication && !isToken(authentication.scheme) ? ['authentication.scheme'] : []),
    ...(isHeaderText(authentication?.credentials) ? [] : ['authentication.credentials']),
  ].map((field) => ({ field, description: 'must not contain characters that no HTTP header can hold' }));
  if (violations.length > 0) throw new RialtoError('invalid_params', { violations });
}

/** True for printable ASCII, the only text that this process sends in a header (platform/http/safe-headers.ts). */
function isHeaderText(text = ''): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

function isToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}
