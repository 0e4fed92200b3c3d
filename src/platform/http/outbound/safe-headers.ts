import { RialtoError } from '../../../kernel/errors.js';

const tokenShape = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Printable ASCII: CR, LF and NUL split a message, and servers read bytes above 127 in different ways (abuse 27). */
const valueShape = /^[\t\x20-\x7e]*$/;

/** Framing and routing headers that only the client itself sets (RFC 9110 section 7.6.1, RFC 9112 section 6). */
const ownHeaders = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'upgrade',
  'te',
  'trailer',
  'expect',
]);

/** Headers that a redirect to another origin may still carry; any other name could hold a credential. */
const portableHeaders = new Set([
  'accept',
  'accept-language',
  'user-agent',
  'a2a-version',
  'a2a-extensions',
  'mcp-protocol-version',
]);

/**
 * Checks the headers of a request: names become lower case, `accept-encoding` is `identity`. Throws `invalid_params`
 * without any value.
 */
export function requestHeaders(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const headers: Record<string, string> = { 'user-agent': 'rialto' };
  for (const name of Object.keys(given)) {
    const lower = name.toLowerCase();
    const value = given[name];
    if (!tokenShape.test(lower) || ownHeaders.has(lower) || typeof value !== 'string' || !valueShape.test(value)) {
      throw new RialtoError('invalid_params', { message: 'A request header is not allowed' });
    }
    headers[lower] = value;
  }
  headers['accept-encoding'] = 'identity';
  return headers;
}

/** The headers that remain after a redirect to another origin (AN-39: credentials are dropped). */
export function portableOnly(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => portableHeaders.has(name) || name === 'accept-encoding'),
  );
}

/** Response headers as one string each, in an object without a prototype, because the remote chooses the names. */
export function responseHeaders(
  received: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const headers = Object.create(null) as Record<string, string>;
  for (const name of Object.keys(received)) {
    const value = received[name];
    if (value !== undefined) headers[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return headers;
}
