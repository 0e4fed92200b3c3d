import { Injectable } from '@nestjs/common';
import { RialtoError, type Violation } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { trimEnd } from '../kernel/text.js';
import { normaliseCard, type NormalisedCard } from '../protocol/a2a/card.js';
import { containsUnstorable, parseJson } from '../protocol/jsonrpc.js';
import { SafeFetch, type SafeResponse } from '../platform/http/safe-fetch.js';

const deadlineMs = 3_000;
const maxCardBytes = 1_048_576;
const maxRedirects = 3;
const wellKnown = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

/** A card as it was sent, and what it means. */
export interface FetchedCard {
  readonly cardUrl: string;
  /** Byte for byte. */
  readonly text: string;
  /** Parsed, with members that mean nothing here too. */
  readonly raw: JsonObject;
  readonly card: NormalisedCard;
  readonly etag: string | null;
}

export interface CardRequest {
  /** Sent only to the origin of the URL itself. */
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** The base URL of an agent: its address without a card path, a query, a fragment or a trailing slash. Throws `url_not_allowed`. */
export function baseUrlOf(text: string): string {
  if (!URL.canParse(text)) throw new RialtoError('url_not_allowed', { message: 'url is not a URL' });
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new RialtoError('url_not_allowed', { message: 'a URL may not hold a credential; give it as "credential"' });
  const path = wellKnown.reduce(
    (rest, known) => (rest.endsWith(known) ? rest.slice(0, -known.length) : rest),
    url.pathname,
  );
  return `${url.origin}${trimEnd(path, '/')}`;
}

/** Where the card of an address may lie, most likely first (RE-53). */
function cardCandidates(text: string): string[] {
  const url = new URL(text);
  url.hash = '';
  const base = baseUrlOf(text);
  const itself = url.href;
  const known = wellKnown.map((path) => `${base}${path}`);
  return [...new Set(url.pathname.endsWith('.json') ? [itself, ...known] : [...known, itself])];
}

/** Fetches and checks cards; every byte through the safe client, at most three redirects, each hop checked (AN-39). */
@Injectable()
export class CardFetcher {
  constructor(private readonly safeFetch: SafeFetch) {}

  /** Finds the card of an address. Throws `url_not_allowed`, or `card_invalid` with `upstreamStatus` and the reason. */
  async discover(address: string, request: CardRequest = {}): Promise<FetchedCard> {
    let failure = new RialtoError('card_invalid', { message: 'no agent card was found' });
    for (const candidate of cardCandidates(address)) {
      try {
        const card = await this.fetch(candidate, request);
        if (card) return card;
      } catch (error) {
        const known = RialtoError.from(error);
        if (known.code !== 'card_invalid') throw known;
        failure = known;
        // Only "not here" sends us to the next place; an agent that is down or answers nonsense is told so.
        if (known.data?.upstreamStatus !== 404 && known.data?.upstreamStatus !== 405) break;
      }
    }
    throw failure;
  }

  /** Fetches one card; undefined when it did not change since `etag`. Throws as `discover` does. */
  async fetch(cardUrl: string, request: CardRequest = {}, etag?: string): Promise<FetchedCard | undefined> {
    const response = await this.get(cardUrl, request, etag);
    if (response.status === 304 && etag !== undefined) return undefined;
    if (response.status !== 200) throw invalid(`the card answers HTTP ${response.status}`, response.status);
    const text = response.body.toString('utf8');
    const parsed = parseJson(text);
    if (!parsed.ok) throw invalid(`the card is not JSON: ${parsed.reason}`, response.status);
    if (containsUnstorable(parsed.value))
      throw invalid('the card holds NUL characters or lone surrogates', response.status);
    const normalised = normaliseCard(parsed.value, { url: cardUrl });
    if (!normalised.ok) throw invalid('the card is not valid', response.status, normalised.violations);
    return {
      cardUrl,
      text,
      raw: normalised.raw,
      card: normalised.card,
      etag: response.headers.etag ?? null,
    };
  }

  private async get(url: string, { headers, signal }: CardRequest, etag?: string): Promise<SafeResponse> {
    try {
      return await this.safeFetch.request({
        method: 'GET',
        url,
        headers: { accept: 'application/json', ...headers, ...(etag !== undefined && { 'if-none-match': etag }) },
        deadlineMs,
        maxBytes: maxCardBytes,
        redirects: maxRedirects,
        signal,
      });
    } catch (error) {
      const known = RialtoError.from(error);
      if (known.code === 'url_not_allowed' || known.code === 'canceled' || known.code === 'internal') throw known;
      throw new RialtoError('card_invalid', {
        message: `the card cannot be fetched: ${known.message}`,
        data: { upstreamStatus: null, reason: known.code },
        cause: error,
      });
    }
  }
}

function invalid(message: string, upstreamStatus: number, violations?: Violation[]): RialtoError {
  return new RialtoError('card_invalid', { message, data: { upstreamStatus }, violations });
}
