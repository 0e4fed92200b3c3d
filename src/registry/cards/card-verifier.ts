import { Inject, Injectable } from '@nestjs/common';
import { flattenedVerify, importJWK } from 'jose';
import type { JsonObject } from '../../kernel/json.js';
import {
  signaturesOf,
  signedTexts,
  type CardSignature,
  type SignedText,
} from '../../protocol/a2a/card/card-signature.js';
import { holdsInexactNumber } from '../../protocol/json-text.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { cardKeyOf, fetchKeySet, type CardKey, type KeySet } from './card-keys.js';
import { canonicalForms } from './card-signer.js';
import type { KeyPin, Verdict } from './card-trust.js';

/** A card to check. */
export interface CardToVerify {
  /** The card as it was received. */
  readonly text: string;
  readonly raw: JsonObject;
  readonly cardUrl: string;
}

/** Result of checking one signature. */
type Finding =
  | { readonly state: 'verified'; readonly kid: string; readonly key: CardKey; readonly jku?: string }
  | { readonly state: 'failed'; readonly kid: string; readonly reason: string }
  | { readonly state: 'unknown'; readonly kid: string; readonly reason: string; readonly isTransient: boolean };

type Keys = { ok: true; keys: readonly CardKey[] } | Extract<KeySet, { ok: false }>;

const algorithms = new Set(['EdDSA', 'Ed25519', 'ES256', 'ES384', 'PS256', 'RS256']);
/** Algorithms that prove no author: no signature, or one by a shared secret. */
const forgeable = /^(?:none$|HS)/i;
const maxSignatures = 8;
const maxKeySets = 2;
/** Number of keys with the same id that are tried. A key set could otherwise cause any amount of work. */
const maxNamesakes = 2;

/**
 * Verifies the signatures of cards of registered agents (v1.0 section 8.4). It uses the operator's keys when the
 * settings have keys for the host of the card; else the pinned key of the agent; else, for the first card, the keys
 * of the `jku`, which must have the origin of the card.
 */
@Injectable()
export class CardVerifier {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly safeFetch: SafeFetch,
  ) {}

  /** Checks the signatures of a card. A malformed card or signature gives a verdict, not an error. */
  async verify(card: CardToVerify, pin: KeyPin | null, signal?: AbortSignal): Promise<Verdict> {
    const signatures = signaturesOf(card.raw);
    if (signatures.length === 0) return { state: 'unsigned' };
    if (signatures.length > maxSignatures) return invalidSignature(`it has more than ${maxSignatures} signatures`);
    if (holdsInexactNumber(card.text))
      return invalidSignature('it contains a number that JSON parsers read differently');
    const check = new SignatureCheck(card, pin, this.operatorKeys(card.cardUrl), (jku) =>
      fetchKeySet(this.safeFetch, jku, this.originsFor(card.cardUrl), signal),
    );
    return check.judge(signatures);
  }

  /** Returns the operator's keys for the host; undefined when there are none. */
  private operatorKeys(cardUrl: string): CardKey[] | undefined {
    const { host, hostname } = new URL(cardUrl);
    const keys = this.settings.cardKeys
      .filter(({ hosts }) => !hosts || hosts.includes(host) || hosts.includes(hostname))
      .map(cardKeyOf)
      .filter((key) => key !== undefined);
    return keys.length > 0 ? keys : undefined;
  }

  private originsFor(cardUrl: string): string[] {
    return [new URL(cardUrl).origin, ...this.settings.RIALTO_CARD_KEY_ORIGINS];
  }
}

/** Checks one card. Its signatures share the computed texts and the fetched key sets. */
class SignatureCheck {
  private readonly keySets = new Map<string, Promise<KeySet>>();
  private readonly texts: SignedText[] = [];
  private readonly moreTexts: AsyncGenerator<SignedText>;

  constructor(
    { raw, cardUrl }: CardToVerify,
    private readonly pin: KeyPin | null,
    private readonly operatorKeys: readonly CardKey[] | undefined,
    private readonly fetchKeys: (jku: string) => Promise<KeySet>,
  ) {
    this.moreTexts = signedTexts(raw, cardUrl, () => sdkForms(raw));
  }

  /**
   * Returns the verdict: one signature by a trusted key is sufficient, but a wrong signature under the pinned key id
   * makes the card invalid.
   */
  async judge(signatures: readonly (CardSignature | undefined)[]): Promise<Verdict> {
    const findings: Finding[] = [];
    for (const signature of signatures) findings.push(await this.findKey(signature));
    const verified = findings.filter((finding) => finding.state === 'verified');
    const failed = findings.filter((finding) => finding.state === 'failed');
    const chosen = verified.find(({ key }) => key.thumbprint === this.pin?.thumbprint) ?? verified[0];
    const underPin = failed.find(({ kid }) => kid === this.pin?.kid && kid !== chosen?.kid);
    if (underPin) return invalidSignature(underPin.reason);
    if (chosen) return this.confirmed(chosen);
    if (failed[0]) return invalidSignature(failed[0].reason);
    const unknown = findings.filter((finding) => finding.state === 'unknown');
    const { reason } = unknown.find(({ isTransient }) => isTransient) ?? unknown[0]!;
    return { state: 'unverified', reason, isTransient: unknown.some(({ isTransient }) => isTransient) };
  }

  private async findKey(signature: CardSignature | undefined): Promise<Finding> {
    if (!signature) return { state: 'failed', kid: '', reason: 'a signature is malformed' };
    const { alg, kid, jku } = signature;
    const unknown = (reason: string): Finding => ({ state: 'unknown', kid, reason, isTransient: false });
    if (forgeable.test(alg)) return { state: 'failed', kid, reason: `the algorithm ${brief(alg)} proves no signer` };
    if (!algorithms.has(alg)) return unknown(`the algorithm ${brief(alg)} is not supported`);
    if (signature.isCritical) return unknown('its header requires extensions, which are not supported');
    if (kid === '') return unknown('its header names no key');
    const found = await this.keysFor(signature);
    if (!found.ok) return { state: 'unknown', kid, reason: found.reason, isTransient: found.isTransient };
    const keys = found.keys.filter((key) => key.kid === kid).slice(0, maxNamesakes);
    if (keys.length === 0) return unknown(`no key ${brief(kid)} is known`);
    let isPartial = false;
    for await (const { text, isWhole } of this.signed()) {
      for (const key of keys) {
        if (!(await isSignedBy(key, signature, text))) continue;
        if (isWhole) return { state: 'verified', kid, key, jku };
        isPartial = true;
      }
    }
    const reason = isPartial
      ? `the signature under the key ${brief(kid)} does not cover all members that this gateway uses`
      : `the signature under the key ${brief(kid)} is wrong: it is forged, or the card was altered`;
    return { state: 'failed', kid, reason };
  }

  private async keysFor({ kid, jku }: CardSignature): Promise<Keys> {
    const { pin, operatorKeys } = this;
    if (operatorKeys) return { ok: true, keys: operatorKeys };
    if (pin?.jwk && pin.kid === kid) return { ok: true, keys: [{ ...pin, jwk: pin.jwk }] };
    if (jku === undefined) return { ok: false, reason: `no key ${brief(kid)} is known`, isTransient: false };
    return this.keySet(jku);
  }

  /**
   * Checks a pinned key against its key set: a key that the set no longer contains was withdrawn; when the set cannot
   * be read, the key stays valid.
   */
  private async confirmed({ key, jku }: Finding & { state: 'verified' }): Promise<Verdict> {
    const verdict = { state: 'verified' as const, key, isOperators: this.operatorKeys !== undefined };
    const isPinned = !verdict.isOperators && this.pin?.jwk !== undefined && key.thumbprint === this.pin.thumbprint;
    if (!isPinned || jku === undefined) return verdict;
    const set = await this.keySet(jku);
    if (!set.ok) return { ...verdict, reason: `verified by the pinned key; ${set.reason}` };
    if (set.keys.some(({ thumbprint }) => thumbprint === key.thumbprint)) return verdict;
    return { state: 'unverified', reason: `the key ${brief(key.kid)} was withdrawn`, isTransient: false };
  }

  private keySet(jku: string): Promise<KeySet> {
    const known = this.keySets.get(jku);
    if (known) return known;
    if (this.keySets.size >= maxKeySets)
      return Promise.resolve({ ok: false, reason: 'it names too many key sets', isTransient: false });
    const fetched = this.fetchKeys(jku);
    this.keySets.set(jku, fetched);
    return fetched;
  }

  private async *signed(): AsyncGenerator<SignedText> {
    yield* this.texts;
    for (let next = await this.moreTexts.next(); !next.done; next = await this.moreTexts.next()) {
      this.texts.push(next.value);
      yield next.value;
    }
  }
}

/** Returns the texts that the official JavaScript SDK would sign; none for a card that it cannot read. */
async function sdkForms({ signatures: _signatures, ...content }: JsonObject): Promise<string[]> {
  try {
    return await canonicalForms(content);
  } catch {
    return [];
  }
}

async function isSignedBy({ jwk }: CardKey, signature: CardSignature, text: string): Promise<boolean> {
  const { alg } = signature;
  if (jwk.alg !== undefined && jwk.alg !== alg && !(jwk.alg.startsWith('Ed') && alg.startsWith('Ed'))) return false;
  try {
    const jws = {
      payload: Buffer.from(text).toString('base64url'),
      protected: signature.protected,
      signature: signature.signature,
    };
    await flattenedVerify(jws, await importJWK(jwk, alg), { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

function invalidSignature(reason: string): Verdict {
  return { state: 'invalid', reason };
}

function brief(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
