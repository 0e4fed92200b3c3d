import { Injectable } from '@nestjs/common';
import { canonicalJson } from '../../kernel/canonical-json.js';
import type { JsonObject } from '../../kernel/json.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SigningKeys, type Signer } from '../../platform/secrets/signing-keys.js';
import type { CardForm } from '../../protocol/a2a/card/published-card.js';

/**
 * Signs the cards of this deployment: JWS over the canonical form of the card without its signatures (v1.0 section
 * 8.4).
 */
@Injectable()
export class CardSigner {
  constructor(
    private readonly keys: SigningKeys,
    private readonly publicUrl: PublicUrl,
  ) {}

  /** Returns the current signing key, without a promise when it is known: every request of a card looks it up. */
  signer(): Signer | Promise<Signer> {
    return this.keys.peek() ?? this.keys.current();
  }

  /** Returns the card with its signatures. */
  async sign(card: JsonObject, form: CardForm, signer: Signer): Promise<JsonObject> {
    const newer = form === '0.3' ? [] : await canonicalForms(card);
    // The canonical form of the specification covers no member of v0.3, and so not the interfaces that only v0.3 has.
    const older = form === '1.0' ? [] : [canonicalJson(card)];
    const payloads = new Set([...newer, ...older]);
    return { ...card, signatures: [...payloads].map((payload) => this.signature(payload, signer)) };
  }

  private signature(payload: string, { kid, sign }: Signer): { protected: string; signature: string } {
    const jku = `${this.publicUrl.base}/.well-known/jwks.json`;
    const header = base64url(JSON.stringify({ alg: 'EdDSA', kid, typ: 'JOSE', jku }));
    return { protected: header, signature: sign(Buffer.from(`${header}.${base64url(payload)}`)) };
  }
}

/**
 * Returns the texts that the signatures of a v1.0 card cover. The first is the canonical form of the specification.
 * The second is the canonical form of the card as the official SDK reads it back: version 1.3.0 loses parsed security
 * schemes in the canonical form, so its clients reject the first signature. A card needs one valid signature; a
 * client that follows the specification checks the first one, which covers the security schemes.
 */
export async function canonicalForms(card: JsonObject): Promise<string[]> {
  const { AgentCard, canonicalizeAgentCard } = await import('@a2a-js/sdk');
  const whole = AgentCard.fromJSON(card);
  return [...new Set([canonicalizeAgentCard(card as never), canonicalizeAgentCard(whole)])];
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
