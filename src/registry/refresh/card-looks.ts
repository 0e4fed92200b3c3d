import { Inject, Injectable } from '@nestjs/common';
import { parseExact } from '../../protocol/exact-integers.js';
import { RialtoError } from '../../kernel/errors.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { AgentCredentials } from '../agent-credentials.js';
import { AgentProofs } from '../agent-proofs.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { CardFetcher, type FetchedCard } from './card-fetcher.js';
import type { KeyPin, Verdict } from '../cards/card-trust.js';
import { CardVerifier, type CardToVerify } from '../cards/card-verifier.js';
import type { Attempt } from '../agents/health.js';
import type { Credential } from '../registry.types.js';

/** Result of one check of a card. `found` is undefined when the card did not change. */
export interface CardLook {
  readonly result: Attempt;
  readonly found?: FetchedCard;
  /** Signature verdict for `found`, else for the stored card. Undefined when no signatures were checked. */
  readonly verdict?: Verdict;
  readonly error?: string;
}

/** Fetches cards of registered agents and checks their signatures, at registration and at each refresh. */
@Injectable()
export class CardLooks {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly fetcher: CardFetcher,
    private readonly verifier: CardVerifier,
    private readonly proofs: AgentProofs,
    private readonly credentials: AgentCredentials,
  ) {}

  /** Finds and checks the card of a new address. Throws as `CardFetcher.discover` does. */
  async checkNew(address: string, credential?: Credential, signal?: AbortSignal): Promise<CardLook> {
    const found = await this.fetcher.discover(address, { proof: this.proofs.given(credential), signal });
    return { result: 'ok', found, verdict: await this.judgeSignatures(found, null, signal) };
  }

  /** Fetches and checks the card of a registered agent. Failures of the agent are a result, not an error. */
  async recheck(row: AgentEntity, signal?: AbortSignal): Promise<CardLook> {
    const request = { proof: this.proofs.headersOf(row), signal };
    const address = this.credentials.openAddress(row);
    try {
      const found =
        row.card === null
          ? await this.fetcher.discover(address, request)
          : await this.fetcher.fetch(address, request, row.etag ?? undefined);
      const verdict = await this.judgeSignatures(found ?? storedCard(row), row.pinnedKey, signal);
      return { result: 'ok', found, verdict };
    } catch (error) {
      const known = RialtoError.from(error);
      if (known.code !== 'card_invalid' && known.code !== 'url_not_allowed') throw known;
      const answered = typeof known.data?.upstreamStatus === 'number' && known.data.upstreamStatus < 400;
      const result = answered ? 'invalid' : 'unreachable';
      return { result, error: storableText(known.message, 500), verdict: this.withoutCard(row) };
    }
  }

  /** Returns the URL where a card was found, as the agent's row stores it. */
  addressOf(row: AgentEntity, { cardUrl }: FetchedCard): Pick<AgentEntity, 'cardUrl' | 'cardQuery'> {
    return this.credentials.sealAddress(row, cardUrl);
  }

  private async judgeSignatures(
    card: CardToVerify,
    pin: KeyPin | null,
    signal?: AbortSignal,
  ): Promise<Verdict | undefined> {
    return this.settings.RIALTO_CARD_SIGNATURES === 'off' ? undefined : this.verifier.verify(card, pin, signal);
  }

  /**
   * Returns the verdict when the card cannot be fetched: with `require`, a stored card that was never verified cannot
   * be used.
   */
  private withoutCard({ card, signature }: AgentEntity): Verdict | undefined {
    if (this.settings.RIALTO_CARD_SIGNATURES !== 'require' || card === null) return undefined;
    if (signature?.state === 'verified') return undefined;
    return { state: 'unverified', reason: 'the card cannot be fetched', isTransient: false };
  }
}

function storedCard({ card, cardUrl }: AgentEntity): CardToVerify {
  return { text: card!, raw: parseExact(card!) as JsonObject, cardUrl };
}
