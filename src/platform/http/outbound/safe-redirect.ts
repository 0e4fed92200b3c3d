import { parseUrl } from './address.js';
import { urlNotAllowed, type OutboundPolicy } from './safe-connect.js';
import { portableOnly } from './safe-headers.js';

/** One request of a redirect chain: its URL and headers. */
export interface Hop {
  readonly url: URL;
  readonly headers: Record<string, string>;
}

const redirects = new Set([301, 302, 303, 307, 308]);

/**
 * Returns the next hop of a GET or HEAD; undefined when the answer is not a redirect. Credentials are never sent to
 * another origin, and a redirect from https to http is refused (AN-39, abuse 22). The URL itself is checked when it
 * is requested.
 */
export function nextHop(
  answer: { status: number; headers: Readonly<Record<string, string>> },
  { url, headers }: Hop,
  policy: OutboundPolicy,
): Hop | undefined {
  const location = answer.headers['location'];
  if (location === undefined || !redirects.has(answer.status)) return undefined;
  const next = parseUrl(location, url);
  if (next === undefined) throw urlNotAllowed('redirect to an invalid URL', policy);
  if (url.protocol === 'https:' && next.protocol !== 'https:') throw urlNotAllowed('redirect from https', policy);
  return { url: next, headers: next.origin === url.origin ? headers : portableOnly(headers) };
}
