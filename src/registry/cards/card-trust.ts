import type { JsonObject } from '../../kernel/json.js';
import { contentHash } from '../../protocol/a2a/card/card.js';
import { signersOf } from '../../protocol/a2a/card/card-signature.js';
import type { CardKey } from './card-keys.js';

/** How signatures count (RIALTO_CARD_SIGNATURES). */
export type SignatureMode = 'off' | 'prefer' | 'require';

/** What the signatures of a card prove. */
export type Verdict =
  | { readonly state: 'unsigned' }
  | { readonly state: 'invalid'; readonly reason: string }
  /** The key cannot be had; `isTransient`: perhaps later. */
  | { readonly state: 'unverified'; readonly reason: string; readonly isTransient: boolean }
  | {
      readonly state: 'verified';
      readonly key: CardKey;
      readonly isOperators: boolean;
      /** What could not be asked about a key that is pinned. */
      readonly reason?: string;
    };

/** The key an agent is held to. Without `jwk` it is one of the operator's, and counts while the operator has it. */
export type KeyPin = Pick<CardKey, 'kid' | 'thumbprint'> & Partial<Pick<CardKey, 'jwk'>>;

/** What is kept about the signatures of the card that an agent has. */
export interface CardSignatureState {
  readonly state: Verdict['state'];
  readonly reason?: string;
  /** The key that verified it: an approval pins it. */
  readonly key?: KeyPin;
}

/** What an agent was held to before a look at its card. */
export interface Prior {
  readonly pin: KeyPin | null;
  readonly signature: CardSignatureState | null;
  /** False at registration. */
  readonly hasCard: boolean;
  /** The card that was looked at is the one it has. */
  readonly isSame: boolean;
}

/** What a look at a card leads to. */
export type TrustDecision =
  /** The card is not taken: something is wrong with it. */
  | { readonly action: 'refuse'; readonly reason: string }
  /** The card it has stays in use as it is, until the key can be had. */
  | { readonly action: 'keep'; readonly signature: CardSignatureState }
  /** `isHeld`: it waits for approval, whatever RIALTO_CARD_CHANGES says. */
  | {
      readonly action: 'take';
      readonly signature: CardSignatureState | null;
      readonly pin: KeyPin | null;
      readonly isHeld: boolean;
    };

/**
 * Decides on a card by its signatures. A pin is set at first sight and is never lost or replaced without an approval; a wrong
 * signature is never taken. `verdict` is absent in the mode `off`.
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

/** Why an admin may not approve such a card; undefined when it may be. */
export function approvalRefusal(mode: SignatureMode, signature: CardSignatureState | null): string | undefined {
  if (mode === 'off' || signature?.state === 'verified') return undefined;
  if (signature?.state === 'invalid') return signature.reason;
  return mode === 'require' ? 'RIALTO_CARD_SIGNATURES=require: the signature of the card is not verified' : undefined;
}

/** What a card says and who signed it, for telling whether it changed. */
export function changeHash(card: JsonObject, mode: SignatureMode): string {
  const signers = mode === 'off' ? [] : signersOf(card);
  return contentHash(card, signers.length > 0 ? signers : undefined);
}

/** The same with the key that verified it: what an approval names. */
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
