import { isEncrypted } from './encrypted-parts.js';

describe('N4 isEncrypted', () => {
  const payload = (bytes: number, version = 1) =>
    Buffer.concat([Buffer.of(version), Buffer.alloc(bytes - 1, 0xff)]).toString('base64url');
  const part = (encrypted_payload: unknown, more = {}) => ({ data: { encrypted_payload, ...more } as never });

  it.each([
    ['the shortest ciphertext', [part(payload(49))]],
    ['with padding', [part(Buffer.concat([Buffer.of(1), Buffer.alloc(49)]).toString('base64url') + '=')]],
    ['an unknown version', [part(payload(100), { encryption_version: 'mls-v9' })]],
    ['several parts', [part(payload(60)), part(payload(70))]],
  ])('accepts %s', (_, parts) => expect(isEncrypted(parts)).toBe(true));

  it.each([
    ['no part', []],
    ['a text', [{ text: payload(100) }]],
    ['an additional text part', [part(payload(100)), { text: 'plain' }]],
    ['a short payload', [part(payload(48))]],
    ['another first byte', [part(payload(100, 2))]],
    ['a payload that is not base64url', [part(`${payload(100)} hello`)]],
    ['a payload that is not a string', [part(49)]],
    ['a version that is not a string', [part(payload(100), { encryption_version: 1 })]],
    ['a list', [{ data: [payload(100)] as never }]],
  ])('refuses %s', (_, parts) => expect(isEncrypted(parts)).toBe(false));
});
