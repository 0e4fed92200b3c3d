import { createHash } from 'node:crypto';
import { Aes128Gcm, Aes256Gcm, CipherSuite, HkdfSha256 } from '@hpke/core';
import { DhkemX25519HkdfSha256 } from '@hpke/dhkem-x25519';
import { Hpke } from './hpke.js';

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
const base64url = (hex: string) => Buffer.from(hex, 'hex').toString('base64url');
const info = bytes('4f6465206f6e2061204772656369616e2055726e');

describe('RI-52 Hpke', () => {
  it('opens the vector of RFC 9180 appendix A.1.1', async () => {
    const opening = await new Hpke(new Aes128Gcm()).openingWith(
      {
        x: base64url('3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d'),
        d: base64url('4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8'),
      },
      bytes('37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431'),
      info,
    );
    const vectors = [
      ['Count-0', 'f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a'],
      ['Count-1', 'af2d7e9ac9ae7e270f46ba1f975be53c09f8d875bdc8535458c2494e8a6eab251c03d0c22a56b8ca42c2063b84'],
    ] as const;
    for (const [aad, ciphertext] of vectors) {
      const opened = await opening.open(bytes(ciphertext), Buffer.from(aad));
      expect(opened.toString()).toBe('Beauty is truth, truth beauty');
    }
  });

  // The keys are those of the test vectors of RFC 9180 (CFRG) for X25519 and AES-256-GCM, which the RFC does not print.
  // In place of ciphertexts they have the SHAKE128 of 1,000 of them, for inputs drawn from the SHAKE128 of nothing.
  it('opens what the CFRG vector for AES-256-GCM seals', async () => {
    const suite = new CipherSuite({
      kem: new DhkemX25519HkdfSha256(),
      kdf: new HkdfSha256(),
      aead: new Aes256Gcm(),
    });
    const x = '430f4b9859665145a6b1ba274024487bd66f03a2dd577d7753c68d7d7d00c00c';
    const seed = '2cd7c601cefb3d42a62b04b7a9041494c06c7843818e0ce28a8f704ae7ab20f9';
    const ekm = await suite.kem.deriveKeyPair(bytes(seed).buffer);
    const recipientPublicKey = await suite.kem.deserializePublicKey(bytes(x).buffer);
    const sealing = await suite.createSenderContext({ recipientPublicKey, info, ekm });
    const enc = new Uint8Array(sealing.enc);
    expect(Buffer.from(enc).toString('hex')).toBe('6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256');

    const d = base64url('497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d');
    const opening = await new Hpke().openingWith({ x: base64url(x), d }, enc, info);
    const source = createHash('shake128', { outputLength: 600_000 }).digest();
    let at = 0;
    const draw = () => source.subarray(at + 1, (at += 1 + source[at]!));
    const sealed = createHash('shake128', { outputLength: 16 });
    for (let round = 0; round < 1_000; round++) {
      const [aad, plaintext] = [draw(), draw()];
      const ciphertext = new Uint8Array(await sealing.seal(plaintext, aad));
      sealed.update(ciphertext);
      expect((await opening.open(ciphertext, aad)).equals(plaintext)).toBe(true);
    }
    expect(sealed.digest('hex')).toBe('1702e73e1e71705faa8241022af1deea');
  });
});
