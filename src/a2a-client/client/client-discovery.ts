import { RialtoError } from '../../kernel/errors.js';
import { trimEnd } from '../../kernel/text.js';
import { normaliseCard } from '../../protocol/a2a/card/card.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { SafeFetch, SafeResponse } from '../../platform/http/outbound/safe-fetch.js';
import type { FoundCard } from './client-options.js';
import type { HopHeaders, HopLimits } from '../transports/remote-hop.js';
import { notA2a } from '../transports/wire-error.js';

const wellKnown = ['/.well-known/agent-card.json', '/.well-known/agent.json'];
const maxCardBytes = 1_048_576;
const maxRedirects = 3;

/** Returns the agent's base URL: without card path, query, fragment and trailing slash. Throws `url_not_allowed`. */
export function baseOf(text: string): string {
  if (!URL.canParse(text)) throw new RialtoError('url_not_allowed', { message: 'url is not a URL' });
  const { origin, pathname } = new URL(text);
  const card = wellKnown.find((path) => pathname.endsWith(path));
  return `${origin}${trimEnd(card ? pathname.slice(0, -card.length) : pathname, '/')}`;
}

/**
 * Finds the agent's card: first without credentials, then with them when the agent refuses. Follows at most three
 * redirects; each hop is checked, and the credentials are dropped when the origin changes (AN-39). Throws the network
 * error or the fault of the card.
 */
export async function findCard(
  client: SafeFetch,
  url: string,
  headers: HopHeaders,
  limits: HopLimits,
): Promise<FoundCard> {
  const places = [...(url.endsWith('.json') ? [url] : []), ...wellKnown.map((path) => `${baseOf(url)}${path}`)];
  let failure: RialtoError | undefined;
  // A catch-all route may answer with HTTP 200: the older path is tried too, and the first failure is reported.
  for (const place of new Set(places)) {
    const answer = await fetchCard(client, place, headers, limits);
    const card = answer.status === 200 ? readCard(answer, place) : undefined;
    if (card) return card;
    const { status } = answer;
    const isNotHere = failure?.data?.httpStatus === 404 || failure?.data?.httpStatus === 405;
    if (failure !== undefined && !isNotHere) continue;
    const message = `the card answers HTTP ${status}`;
    failure =
      status === 200
        ? notA2a('the agent card is not valid')
        : new RialtoError('remote_transport', { message, data: { httpStatus: status } });
  }
  throw failure ?? new RialtoError('remote_transport', { data: { httpStatus: 404 } });
}

async function fetchCard(
  client: SafeFetch,
  url: string,
  headers: HopHeaders,
  limits: HopLimits,
): Promise<SafeResponse> {
  const get = (proof: Record<string, string>) =>
    client.request({
      method: 'GET',
      url,
      headers: { accept: 'application/json', ...proof },
      deadlineMs: Math.max(1, limits.deadline.leftMs),
      maxBytes: maxCardBytes,
      redirects: maxRedirects,
      signal: limits.signals,
    });
  const answer = await get({});
  return answer.status === 401 || answer.status === 403 ? get(await headers.headersFor(url, limits)) : answer;
}

function readCard(answer: SafeResponse, url: string): FoundCard | undefined {
  const json = parseJson(answer.body.toString('utf8'));
  const result = json.ok ? normaliseCard(json.value, { url }) : undefined;
  return result?.ok ? { ...result.card, raw: result.raw } : undefined;
}
