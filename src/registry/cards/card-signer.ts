import { Injectable } from '@nestjs/common';
import { canonicalJson } from '../../kernel/canonical-json.js';
import type { JsonObject } from '../../kernel/json.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SigningKeys, type Signer } from '../../platform/secrets/signing-keys.js';
import type { CardForm } from '../../protocol/a2a/card/published-card.js';

/** Signs the cards of this deployment: JWS over the card's canonical form, without its signatures (v1.0 section 8.4). */
@Injectable()
export class CardSigner {
  constructor(
    private readonly keys: SigningKeys,
    private readonly publicUrl: PublicUrl,
  ) {}

  /** The key that signs now. Without a promise while it is known: cards are looked up by it on every request. */
  signer(): Signer | Promise<Signer> {
    return this.keys.peek() ?? this.keys.current();
  }

  /** The card with its signatures. */
  async sign(card: JsonObject, form: CardForm, signer: Signer): Promise<JsonObject> {
    const payloads = form === '0.3' ? [canonicalJson(card)] : await canonicalForms(card);
    return { ...card, signatures: payloads.map((payload) => this.signature(payload, signer)) };
  }

  private signature(payload: string, { kid, sign }: Signer): { protected: string; signature: string } {
    const jku = `${this.publicUrl.base}/.well-known/jwks.json`;
    const header = base64url(JSON.stringify({ alg: 'EdDSA', kid, typ: 'JOSE', jku }));
    return { protected: header, signature: sign(Buffer.from(`${header}.${base64url(payload)}`)) };
  }
}

/**
 * What the signatures of a card with the members of v1.0 are over. The second is the card as the official SDK reads it back:
 * security schemes that it parsed once are lost to its canonical form (1.3.0), so its clients find the first one wrong. Any
 * valid signature will do, and who canonicalises as the specification says is held to the first, schemes and all.
 */
export async function canonicalForms(card: JsonObject): Promise<string[]> {
  const { AgentCard, canonicalizeAgentCard } = await import('@a2a-js/sdk');
  const whole = AgentCard.fromJSON(card);
  return [...new Set([canonicalizeAgentCard(card as never), canonicalizeAgentCard(whole)])];
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
