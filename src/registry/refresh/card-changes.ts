import type { JsonObject } from '../../kernel/json.js';
import { diffCards, type CardChange } from '../../protocol/a2a/card/card.js';
import { signersOf } from '../../protocol/a2a/card/card-signature.js';
import type { CardSignatureState, SignatureMode } from '../cards/card-trust.js';

interface SignedCard {
  readonly card: JsonObject;
  readonly signature: CardSignatureState | null;
}

/**
 * Returns the differences between two cards, for people. Signatures are compared by signer and result, not by their
 * bytes.
 */
export function changesOf(mode: SignatureMode, before: SignedCard, after: SignedCard): CardChange[] {
  if (mode === 'off') return diffCards(before.card, after.card);
  return diffCards(summarised(before), summarised(after));
}

/** Returns whether the signature state that readers see changed. */
export function isTrustChanged(before: CardSignatureState | null, after: CardSignatureState | null): boolean {
  return (
    before?.state !== after?.state ||
    before?.reason !== after?.reason ||
    before?.key?.thumbprint !== after?.key?.thumbprint
  );
}

function summarised({ card, signature }: SignedCard): object {
  const { signatures: _signatures, ...content } = card;
  const signers = signersOf(card);
  if (signers.length === 0) return content;
  const { state, key } = signature ?? {};
  return { ...content, signatures: { signers, state, keyThumbprint: key?.thumbprint } };
}
