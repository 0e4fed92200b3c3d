import type { CallContext } from '../kernel/call-context.js';
import type { TrustTier } from '../kernel/trust.js';
import { messageFacts } from './task-verbs.js';

describe('RI-07 messageFacts', () => {
  const encrypted_payload = Buffer.concat([Buffer.of(1), Buffer.alloc(79)]).toString('base64url');
  const sealed = { parts: [{ data: { encrypted_payload } }] };
  const plain = { parts: [{ text: 'plain' }] };
  const from = (trustTier?: TrustTier, kind = 'user') =>
    ({ org: { id: 'o', slug: 'o', trustTier }, principal: { kind } }) as unknown as CallContext;

  it.each([
    ['cleartext of an org of tier 3', from(3), plain, 0],
    ['an encrypted message of tier 3', from(3), sealed, 3],
    ['an encrypted message of an org without a stated tier', from(), sealed, 1],
    ['an encrypted message of an anonymous sender', from(3, 'anonymous'), sealed, 0],
  ])('%s', (_, ctx, message, trustTier) => {
    expect(messageFacts(ctx, message).trustTier).toBe(trustTier);
  });

  it('counts the bytes of the ciphertext in all parts', () => {
    const parts = [...sealed.parts, ...sealed.parts];
    expect(messageFacts(from(), { parts })).toMatchObject({ encrypted: true, encryptedBytes: 160 });
    expect(messageFacts(from(), plain)).toMatchObject({ encrypted: false, encryptedBytes: 0 });
  });
});
