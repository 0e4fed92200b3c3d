import { Injectable } from '@nestjs/common';
import { RialtoError, type Violation } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { trimEnd } from '../../kernel/text.js';
import { normaliseCard, type NormalisedCard } from '../../protocol/a2a/card/card.js';
import { isUsable, type CardInterface } from '../../protocol/a2a/card-interfaces.js';
import { parseLongJson } from '../../platform/turns.js';
import { containsUnstorable } from '../../protocol/jsonrpc.js';
import { SafeFetch, type SafeResponse } from '../../platform/http/outbound/safe-fetch.js';
import { unreachableReason } from '../../platform/http/outbound/unreachable.js';

const deadlineMs = 3_000;
const maxCardBytes = 1_048_576;
const maxRedirects = 3;
const wellKnown = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

/** A fetched card: its text and the parsed content. */
export interface FetchedCard {
  readonly cardUrl: string;
  /** The card, byte for byte. */
  readonly text: string;
  /** The parsed card, with unknown members. */
  readonly raw: JsonObject;
  readonly card: NormalisedCard;
  readonly etag: string | null;
}

export interface CardRequest {
  /**
   * Returns the credential as headers. It is called when the card is refused without one; the headers go only to the
   * origin of the URL.
   */
  readonly proof?: () => Promise<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/**
 * Returns the base URL of an agent: its address without card path, query, fragment and trailing slash. Throws
 * `url_not_allowed`.
 */
export function baseUrlOf(text: string): string {
  if (!URL.canParse(text)) throw new RialtoError('url_not_allowed', { message: 'url is not a valid URL' });
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new RialtoError('url_not_allowed', {
      message: 'the url contains a credential; send it as "credential" instead',
    });
  const path = wellKnown.reduce(
    (rest, known) => (rest.endsWith(known) ? rest.slice(0, -known.length) : rest),
    url.pathname,
  );
  return `${url.origin}${trimEnd(path, '/')}`;
}

/** Returns the possible URLs of a card, most likely first (RE-53). */
function cardCandidates(text: string): string[] {
  const url = new URL(text);
  url.hash = '';
  const base = baseUrlOf(text);
  const itself = url.href;
  const known = wellKnown.map((path) => `${base}${path}`);
  return [...new Set(url.pathname.endsWith('.json') ? [itself, ...known] : [...known, itself])];
}

/**
 * Fetches and validates cards. All requests use safe-fetch, follow at most three redirects and check each hop
 * (AN-39).
 */
@Injectable()
export class CardFetcher {
  constructor(private readonly safeFetch: SafeFetch) {}

  /**
   * Finds the card of an address. Throws `url_not_allowed`, or `card_invalid` with `upstreamStatus` and the reason.
   */
  async discover(address: string, request: CardRequest = {}): Promise<FetchedCard> {
    let failure: RialtoError | undefined;
    for (const candidate of cardCandidates(address)) {
      try {
        const card = await this.fetch(candidate, request);
        if (card) return card;
      } catch (error) {
        const known = RialtoError.from(error);
        if (known.code !== 'card_invalid') throw known;
        // The first error that says more than "not found" is reported.
        if (failure === undefined || isNotHere(failure)) failure = known;
        // A server that answers may have the card at the next URL, even behind a catch-all route. An unreachable
        // agent has it nowhere.
        if (typeof known.data?.upstreamStatus !== 'number') break;
      }
    }
    throw failure ?? new RialtoError('card_invalid', { message: 'no agent card was found' });
  }

  /** Fetches one card; undefined when it has not changed since `etag`. Throws as `discover` does. */
  async fetch(cardUrl: string, request: CardRequest = {}, etag?: string): Promise<FetchedCard | undefined> {
    const response = await this.getProven(cardUrl, request, etag);
    if (response.status === 304 && etag !== undefined) return undefined;
    if (response.status !== 200) throw invalidCard(`the card answers HTTP ${response.status}`, response.status);
    const text = response.body.toString('utf8');
    const parsed = await parseLongJson(text);
    if (!parsed.ok) throw invalidCard(`the card is not JSON: ${parsed.reason}`, response.status);
    if (containsUnstorable(parsed.value))
      throw invalidCard('the card holds NUL characters or lone surrogates', response.status);
    const normalised = normaliseCard(parsed.value, { url: cardUrl });
    if (!normalised.ok) throw invalidCard('the card is not valid', response.status, normalised.violations);
    this.requireCallable(normalised.card);
    return {
      cardUrl,
      text,
      raw: normalised.raw,
      card: normalised.card,
      etag: response.headers.etag ?? null,
    };
  }

  /** Returns why the gateway cannot call an interface, judged by its URL only; undefined when the URL is allowed. */
  private refusalOf({ url, binding }: CardInterface): RialtoError | undefined {
    try {
      this.safeFetch.checkUrl(binding === 'GRPC' && !/^https?:/i.test(url) ? `https://${url}` : url);
      return undefined;
    } catch (error) {
      return RialtoError.from(error);
    }
  }

  /** Throws `url_not_allowed` when no URL of the card is allowed: every call would fail. */
  private requireCallable({ interfaces }: NormalisedCard): void {
    const usable = interfaces.filter(isUsable);
    const refusals = usable.map((each) => this.refusalOf(each));
    const [refusal] = refusals;
    if (refusal === undefined || refusals.includes(undefined)) return;
    const [{ url }] = usable as [CardInterface];
    throw new RialtoError('url_not_allowed', {
      message: `the card names ${url}, which is not an allowed URL`,
      hint: refusal.hint,
      data: { upstreamStatus: 200, url },
      cause: refusal,
    });
  }

  /** Requests a card first without the credential, because most cards are public. */
  private async getProven(url: string, request: CardRequest, etag?: string): Promise<SafeResponse> {
    const response = await this.get(url, request, {}, etag);
    const isRefused = response.status === 401 || response.status === 403;
    return isRefused && request.proof ? this.get(url, request, await request.proof(), etag) : response;
  }

  private async get(
    url: string,
    { signal }: CardRequest,
    headers: Record<string, string>,
    etag?: string,
  ): Promise<SafeResponse> {
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
      const why = unreachableReason(known)?.text ?? known.message;
      throw new RialtoError('card_invalid', {
        message: `the card cannot be fetched: ${why}`,
        data: { upstreamStatus: null, reason: known.code },
        cause: error,
      });
    }
  }
}

function isNotHere({ data }: RialtoError): boolean {
  return data?.upstreamStatus === 404 || data?.upstreamStatus === 405;
}

function invalidCard(message: string, upstreamStatus: number, violations?: Violation[]): RialtoError {
  return new RialtoError('card_invalid', { message, data: { upstreamStatus }, violations });
}
