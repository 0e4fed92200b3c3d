import type { webcrypto } from 'node:crypto';
import { Aes256Gcm, CipherSuite, HkdfSha256, type AeadInterface } from '@hpke/core';
import { DhkemX25519HkdfSha256 } from '@hpke/dhkem-x25519';
import type { PrivateKey, PublicKey } from './keys.js';

/** The part of an HPKE context (RFC 9180 section 5.2) that a sender uses. It counts the sequence. */
export interface Sealing {
  readonly enc: Uint8Array;
  seal(plaintext: Uint8Array, aad: Uint8Array): Promise<Uint8Array>;
}

/** The part that a receiver uses. A failed `open` rejects and does not count. */
export interface Opening {
  open(ciphertext: Uint8Array, aad: Uint8Array): Promise<Buffer>;
}

/** HPKE in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM; the vectors also use others. */
export class Hpke {
  private readonly suite: CipherSuite;

  constructor(aead: AeadInterface = new Aes256Gcm()) {
    this.suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead });
  }

  /** Encapsulates a fresh key for a recipient. */
  async sealingTo({ x }: Pick<PublicKey, 'x'>, info: Uint8Array): Promise<Sealing> {
    const recipientPublicKey = await this.publicKey(x);
    const context = await this.suite.createSenderContext({ recipientPublicKey, info });
    return {
      enc: new Uint8Array(context.enc),
      seal: async (plaintext, aad) => new Uint8Array(await context.seal(plaintext, aad)),
    };
  }

  /** Opens what was sealed with the encapsulated key `enc`. */
  async openingWith({ x, d }: Pick<PrivateKey, 'x' | 'd'>, enc: Uint8Array, info: Uint8Array): Promise<Opening> {
    // Both halves, because deriving the public one would take as long as the rest.
    const recipientKey = {
      privateKey: (await this.suite.kem.deserializePrivateKey(bytesOf(d))) as webcrypto.CryptoKey,
      publicKey: await this.publicKey(x),
    };
    const context = await this.suite.createRecipientContext({ recipientKey, enc, info });
    return { open: async (ciphertext, aad) => Buffer.from(await context.open(ciphertext, aad)) };
  }

  private async publicKey(x: string): Promise<webcrypto.CryptoKey> {
    return (await this.suite.kem.deserializePublicKey(bytesOf(x))) as webcrypto.CryptoKey;
  }
}

function bytesOf(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64url'));
}
