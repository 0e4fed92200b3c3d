import type { JsonObject } from '../../kernel/json.js';
import { contentHash } from '../../protocol/a2a/card/card.js';
import { signersOf } from '../../protocol/a2a/card/card-signature.js';
import type { CardKey } from './card-keys.js';

/** How signatures of cards are used (RIALTO_CARD_SIGNATURES). */
export type SignatureMode = 'off' | 'prefer' | 'require';

/** Result of checking the signatures of a card. */
export type Verdict =
  | { readonly state: 'unsigned' }
  | { readonly state: 'invalid'; readonly reason: string }
  /** The key is not available; with `isTransient` it may be available later. */
  | { readonly state: 'unverified'; readonly reason: string; readonly isTransient: boolean }
  | {
      readonly state: 'verified';
      readonly key: CardKey;
      readonly isOperators: boolean;
      /** Reason why the key set of a pinned key could not be read. */
      readonly reason?: string;
    };

/**
 * The key that has to sign the cards of an agent. Without `jwk` it is a key of the operator and is valid while the
 * settings contain it.
 */
export type KeyPin = Pick<CardKey, 'kid' | 'thumbprint'> & Partial<Pick<CardKey, 'jwk'>>;

/** Stored signature state of an agent's card. */
export interface CardSignatureState {
  readonly state: Verdict['state'];
  readonly reason?: string;
  /** The key that verified the card. An approval pins it. */
  readonly key?: KeyPin;
}

/** State of an agent before a new check of its card. */
export interface Prior {
  readonly pin: KeyPin | null;
  readonly signature: CardSignatureState | null;
  /** False while the agent is being registered. */
  readonly hasCard: boolean;
  /** True when the checked card is the stored one. */
  readonly isSame: boolean;
}

/** Decision about a checked card. */
export type TrustDecision =
  /** The card is refused because it is wrong. */
  | { readonly action: 'refuse'; readonly reason: string }
  /** The stored card stays in use until the key is available. */
  | { readonly action: 'keep'; readonly signature: CardSignatureState }
  /** The card is stored. With `isHeld` it waits for approval, regardless of RIALTO_CARD_CHANGES. */
  | {
      readonly action: 'take';
      readonly signature: CardSignatureState | null;
      readonly pin: KeyPin | null;
      readonly isHeld: boolean;
    };

/**
 * Decides about a card by its signatures. The first verified key is pinned; only an approval or a key of the operator
 * replaces the pin. A new card with a wrong signature is always refused. `verdict` is undefined in the mode `off`.
 */
export function decideTrust(mode: SignatureMode, verdict: Verdict | undefined, prior: Prior): TrustDecision {
  const { pin, hasCard, isSame } = prior;
  if (mode === 'off' || verdict === undefined) return { action: 'take', signature: null, pin, isHeld: false };
  if (verdict.state === 'verified') return decideVerified(verdict, pin);
  const signature = { ...verdict, ...reasonOf(verdict) };
  if (verdict.state === 'invalid')
    return hasCard && isSame
      ? { action: 'take', signature: plain(signature), pin, isHeld: true }
      : { action: 'refuse', reason: signature.reason };
  if (verdict.state === 'unverified' && verdict.isTransient && pin && hasCard && (mode === 'prefer' || !isSame))
    return { action: 'keep', signature: { ...(prior.signature ?? plain(signature)), reason: signature.reason } };
  if (mode === 'require' && !hasCard) return { action: 'refuse', reason: signature.reason };
  return { action: 'take', signature: plain(signature), pin, isHeld: pin !== null || mode === 'require' };
}

/** Returns why an admin cannot approve a card; undefined when the approval is allowed. */
export function approvalRefusal(mode: SignatureMode, signature: CardSignatureState | null): string | undefined {
  if (mode === 'off' || signature?.state === 'verified') return undefined;
  if (signature?.state === 'invalid') return signature.reason;
  return mode === 'require' ? 'RIALTO_CARD_SIGNATURES=require: the signature of the card is not verified' : undefined;
}

/** Returns a hash over the content of a card and its signers. It changes when the card does. */
export function changeHash(card: JsonObject, mode: SignatureMode): string {
  const signers = mode === 'off' ? [] : signersOf(card);
  return contentHash(card, signers.length > 0 ? signers : undefined);
}

/** Returns the hash that an approval names: as `changeHash`, and also over the key that verified the card. */
export function approvalHash(card: JsonObject, mode: SignatureMode, signature: CardSignatureState | null): string {
  const key = signature?.key?.thumbprint;
  if (key === undefined) return changeHash(card, mode);
  return contentHash(card, { signers: signersOf(card), key });
}

function decideVerified(verdict: Verdict & { state: 'verified' }, pin: KeyPin | null): TrustDecision {
  const { kid, thumbprint, jwk } = verdict.key;
  const key: KeyPin = verdict.isOperators ? { kid, thumbprint } : { kid, thumbprint, jwk };
  const isTrusted = verdict.isOperators || pin === null || pin.thumbprint === thumbprint;
  const reason = isTrusted ? verdict.reason : 'signed by another key than the pinned one';
  const signature: CardSignatureState = { state: 'verified', key, ...(reason !== undefined && { reason }) };
  return { action: 'take', signature, pin: isTrusted ? key : pin, isHeld: !isTrusted };
}

function reasonOf(verdict: Verdict): { reason: string } {
  return { reason: 'reason' in verdict && verdict.reason !== undefined ? verdict.reason : 'the card is not signed' };
}

function plain({ state, reason }: { state: Verdict['state']; reason: string }): CardSignatureState {
  return state === 'unsigned' ? { state } : { state, reason };
}
