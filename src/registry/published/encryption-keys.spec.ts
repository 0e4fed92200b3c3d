import { generateKeys, publicKeys, rotateKeys } from '../../protocol/e2ee/keys.js';
import { keysAfter, maxKeys } from './encryption-keys.js';

describe('RI-52 keysAfter', () => {
  const ring = generateKeys();
  const first = publicKeys(ring).keys;
  const rotated = publicKeys(rotateKeys(ring)).keys;
  const stranger = publicKeys(generateKeys()).keys;

  it('keeps old keys before new ones, and changes nothing for known ones', () => {
    expect(keysAfter([], first, false)).toEqual(first);
    expect(keysAfter(first, rotated, false)).toEqual(rotated);
    expect(keysAfter(rotated, first, false)).toEqual(rotated);
  });

  it('refuses keys that no published key endorses, unless all keys are replaced', () => {
    expect(() => keysAfter(first, stranger, false)).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(keysAfter(first, stranger, true)).toEqual(stranger);
  });

  it.each([
    ['no key to encrypt to', first.slice(1)],
    ['no key to verify with', first.slice(0, 1)],
    ['too many keys', Array.from({ length: maxKeys / 2 + 1 }, () => publicKeys(generateKeys()).keys).flat()],
  ])('refuses %s', (_, keys) => {
    expect(() => keysAfter([], keys, false)).toThrow(expect.objectContaining({ code: 'unprocessable' }));
  });
});
