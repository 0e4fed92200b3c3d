import { approvalHash, approvalRefusal, decideTrust, type KeyPin, type Prior, type Verdict } from './card-trust.js';

const key = (kid: string) => ({ kid, thumbprint: `print-of-${kid}`, jwk: { kty: 'OKP', crv: 'Ed25519', x: kid } });
const [first, second] = [key('first'), key('second')];
const signedBy = (one: typeof first, isOperators = false): Verdict => ({ state: 'verified', key: one, isOperators });
const unsigned: Verdict = { state: 'unsigned' };
const wrong: Verdict = { state: 'invalid', reason: 'it is forged' };
const unknown: Verdict = { state: 'unverified', reason: 'no such key', isTransient: false };
const down: Verdict = { state: 'unverified', reason: 'the key server is down', isTransient: true };

const fresh: Prior = { pin: null, signature: null, hasCard: false, isSame: false };
const known: Prior = { ...fresh, hasCard: true };
const pinned: Prior = { ...known, pin: first, signature: { state: 'verified', key: first } };
const unchanged: Prior = { ...pinned, isSame: true };

const taken = (pin: KeyPin | null, isHeld: boolean) => expect.objectContaining({ action: 'take', pin, isHeld });
const refused = expect.objectContaining({ action: 'refuse' });
const kept = expect.objectContaining({ action: 'keep' });

describe('decideTrust', () => {
  it.each([
    ['the first key is pinned', signedBy(first), fresh, taken(first, false), taken(first, false)],
    [
      'the first key of a known agent without a pin is pinned',
      signedBy(first),
      known,
      taken(first, false),
      taken(first, false),
    ],
    ['the pinned key stays valid', signedBy(first), pinned, taken(first, false), taken(first, false)],
    ['another key waits, and the pin stays', signedBy(second), pinned, taken(first, true), taken(first, true)],
    ['no signature at registration', unsigned, fresh, taken(null, false), refused],
    ['no signature, none before', unsigned, known, taken(null, false), taken(null, true)],
    ['a lost signature waits', unsigned, pinned, taken(first, true), taken(first, true)],
    ['a wrong signature at registration', wrong, fresh, refused, refused],
    ['a wrong signature later', wrong, pinned, refused, refused],
    ['a wrong signature of the unchanged card', wrong, unchanged, taken(first, true), taken(first, true)],
    ['an unknown key at registration', unknown, fresh, taken(null, false), refused],
    ['an unknown key in place of the pinned one waits', unknown, pinned, taken(first, true), taken(first, true)],
    ['no key server at registration', down, fresh, taken(null, false), refused],
    ['no key server for a changed card keeps the stored card', down, pinned, kept, kept],
    ['no key server for the unchanged card', down, unchanged, kept, taken(first, true)],
  ] as const)('%s', (_name, verdict, prior, prefer, require) => {
    expect(decideTrust('prefer', verdict, prior)).toEqual(prefer);
    expect(decideTrust('require', verdict, prior)).toEqual(require);
  });

  it('trusts keys of the operator instead of the pin; it stores none, so trust ends with the setting', () => {
    const pin = { kid: 'second', thumbprint: second.thumbprint };
    expect(decideTrust('prefer', signedBy(second, true), pinned)).toEqual(taken(pin, false));
    expect(decideTrust('prefer', signedBy(first), { ...pinned, pin })).toEqual(taken(pin, true));
  });

  it('ignores signatures in the mode off and keeps the pin', () => {
    for (const verdict of [undefined, wrong, unsigned])
      expect(decideTrust('off', verdict, pinned)).toEqual({ ...taken(first, false).sample, signature: null });
  });
});

describe('approvals', () => {
  it('are refused for a wrong signature, and in the mode require for an unverified one', () => {
    expect(approvalRefusal('prefer', { state: 'invalid', reason: 'it is forged' })).toBe('it is forged');
    expect(approvalRefusal('prefer', { state: 'unsigned' })).toBeUndefined();
    expect(approvalRefusal('require', { state: 'unsigned' })).toMatch('require');
    expect(approvalRefusal('require', null)).toMatch('require');
    expect(approvalRefusal('require', { state: 'verified', key: first })).toBeUndefined();
    expect(approvalRefusal('off', { state: 'invalid' })).toBeUndefined();
  });

  it('name the key as well as the card', () => {
    const protectedHeader = Buffer.from('{"alg":"EdDSA","kid":"k"}').toString('base64url');
    const card = { name: 'A', signatures: [{ protected: protectedHeader, signature: 'x' }] };
    const [one, other] = [first, second].map((each) => approvalHash(card, 'prefer', { state: 'verified', key: each }));
    expect(one).not.toBe(other);
    const resigned = { name: 'A', signatures: [{ protected: protectedHeader, signature: 'y' }] };
    expect(approvalHash(resigned, 'prefer', { state: 'verified', key: first })).toBe(one);
  });
});
