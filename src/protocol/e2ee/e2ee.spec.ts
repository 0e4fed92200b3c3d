import { readOuter } from './envelope.js';
import {
  checkPins,
  decrypt,
  encrypt,
  generateKeys,
  MemoryReplayGuard,
  publicKeys,
  readKeySet,
  rotateKeys,
  StreamOpener,
  StreamSealer,
  type Envelope,
  type Incoming,
  type KeyRing,
  type KeySet,
  type Outgoing,
  type PublicKey,
} from './e2ee.js';

const alice = generateKeys();
const bob = generateKeys();
const place = { messageId: 'm-1', contextId: 'c-1' };
const outgoing: Outgoing = {
  ...place,
  keys: alice,
  sender: 'alice',
  recipient: 'bob',
  recipientKeys: publicKeys(bob),
};
const incoming: Incoming = {
  keys: bob,
  recipient: 'bob',
  keysOf: (sender) => (sender === 'alice' ? publicKeys(alice) : undefined),
  place: { ...place, taskId: 't-1' },
};
const refusal = (code: string) => expect.objectContaining({ name: 'E2eeError', code });
const flipped = (envelope: Envelope, at: number): Envelope => {
  const bytes = Buffer.from(envelope.encrypted_payload, 'base64url');
  bytes[at]! ^= 1;
  return { ...envelope, encrypted_payload: bytes.toString('base64url') };
};

const mutations = Number(process.env.RIALTO_FUZZ_CASES ?? 2_000);
const mutationsAtOnce = 50;

describe('RI-52 decrypt', () => {
  let sealed: Envelope;
  beforeAll(async () => {
    sealed = await encrypt('the plan', outgoing);
  });

  it('returns the payload and its verified sender', async () => {
    const { payload, sender, contentType } = await decrypt(sealed, incoming);
    expect([payload.toString(), sender, contentType]).toEqual(['the plan', 'alice', 'text/plain']);
  });

  it.each(['messageId', 'contextId', 'sender', 'recipient'])('encrypts nothing with half a character in %s', (name) =>
    expect(encrypt('x', { ...outgoing, [name]: 'a\ud800' })).rejects.toEqual(refusal('malformed')),
  );

  it('encapsulates a fresh key for each message', async () => {
    const again = await encrypt('the plan', outgoing);
    expect(readOuter(again.encrypted_payload).enc).not.toEqual(readOuter(sealed.encrypted_payload).enc);
  });

  it.each<[string, string, (envelope: Envelope) => Envelope, Partial<Incoming>?]>([
    ['a flipped bit of the key', 'not_decryptable', (one) => flipped(one, 1)],
    ['a flipped bit of the ciphertext', 'not_decryptable', (one) => flipped(one, 60)],
    ['another first byte', 'malformed', (one) => flipped(one, 0)],
    ['a payload with padding', 'malformed', (one) => ({ ...one, encrypted_payload: `${one.encrypted_payload}=` })],
    ['another recipient', 'wrong_recipient', (one) => one, { recipient: 'carol' }],
    ['another key of the recipient', 'wrong_recipient', (one) => one, { keys: generateKeys() }],
    ['a changed recipient', 'not_decryptable', (one) => ({ ...one, recipient: 'carol' }), { recipient: 'carol' }],
    ['a downgraded version', 'wrong_version', (one) => ({ ...one, encryption_version: 'hpke-v1' })],
    ['another context', 'wrong_context', (one) => one, { place: { ...place, contextId: 'c-2' } }],
    [
      'a swapped context',
      'not_decryptable',
      (one) => ({ ...one, context_id: 'c-2' }),
      { place: { ...place, contextId: 'c-2' } },
    ],
    ['another message id', 'wrong_context', (one) => one, { place: { ...place, messageId: 'm-2' } }],
    ['an answer to another message', 'wrong_context', (one) => one, { place: { ...place, inReplyTo: 'm-0' } }],
    ['an unknown sender', 'unknown_sender', (one) => one, { keysOf: () => undefined }],
    ['keys of another sender', 'unknown_sender', (one) => one, { keysOf: () => publicKeys(bob) }],
    ['an added member', 'not_decryptable', (one) => ({ ...one, note: 'x' })],
    ['a member that is no string', 'malformed', (one) => ({ ...one, task_id: 1 }) as never],
    ['a member that is half a character', 'malformed', (one) => ({ ...one, y: '\ud800' })],
    ['a name of a member that is half a character', 'malformed', (one) => ({ ...one, ['\ud800']: 'y' })],
    ['a missing member', 'malformed', ({ sender: _, ...one }) => one as never],
  ])('refuses %s as %s', async (_, code, change, more = {}) => {
    await expect(decrypt(change(sealed), { ...incoming, ...more })).rejects.toEqual(refusal(code));
  });

  it('refuses a message that its receiver sends on in the name of the sender', async () => {
    // Bob signs nothing new: he would need a signature of Alice over the encapsulated key for Carol.
    const carol = generateKeys();
    const forged = await encrypt('the plan', {
      ...outgoing,
      keys: { keys: [{ ...bob.keys[1]!, kid: alice.keys[1]!.kid }] },
      recipient: 'carol',
      recipientKeys: publicKeys(carol),
    });
    await expect(decrypt(forged, { ...incoming, keys: carol, recipient: 'carol' })).rejects.toEqual(
      refusal('bad_signature'),
    );
  });

  it('refuses a replay for another task, and accepts a repeated delivery for the same one', async () => {
    const replays = new MemoryReplayGuard();
    const at = (taskId: string) => ({ ...incoming, replays, place: { ...place, taskId } });
    await decrypt(sealed, at('t-1'));
    await decrypt(sealed, at('t-1'));
    await expect(decrypt(sealed, at('t-2'))).rejects.toEqual(refusal('replayed'));
  });

  it('refuses a message of one task in another', async () => {
    const bound = await encrypt('the plan', { ...outgoing, taskId: 't-1' });
    await expect(decrypt(bound, incoming)).resolves.toBeDefined();
    const elsewhere = { ...incoming, place: { ...place, taskId: 't-2' } };
    await expect(decrypt(bound, elsewhere)).rejects.toEqual(refusal('wrong_context'));
  });

  it('accepts no mutation of an envelope', async () => {
    const random = randomOf(20_261_128);
    const text = JSON.stringify(sealed);
    const names = Object.keys(sealed) as (keyof Envelope)[];
    for (let tried = 0; tried < mutations; tried += mutationsAtOnce) {
      const mutants = Array.from({ length: mutationsAtOnce }, () => mutated(sealed, names, random));
      const changed = mutants.filter((mutant) => JSON.stringify(mutant) !== text);
      for (const outcome of await Promise.allSettled(changed.map((mutant) => decrypt(mutant, incoming))))
        expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'E2eeError' } });
    }
  }, 600_000);
});

describe('RI-52 StreamOpener', () => {
  const chunks = async (count: number): Promise<Envelope[]> => {
    const sealer = await StreamSealer.open(outgoing);
    const sealed: Envelope[] = [];
    for (let at = 0; at < count; at++) sealed.push(await sealer.seal(`chunk ${at}`, { last: at === count - 1 }));
    return sealed;
  };

  it('opens the chunks in their order, under one encapsulated key', async () => {
    const sealed = await chunks(3);
    const opener = new StreamOpener(incoming);
    const texts: string[] = [];
    for (const chunk of sealed) texts.push((await opener.open(chunk)).payload.toString());
    opener.end();
    expect(texts).toEqual(['chunk 0', 'chunk 1', 'chunk 2']);
    expect(new Set(sealed.map((one) => readOuter(one.encrypted_payload).enc.toString('hex'))).size).toBe(1);
  });

  it.each<[string, (all: Envelope[]) => Envelope[], string]>([
    ['a dropped chunk', ([first, , third]) => [first!, third!], 'out_of_order'],
    ['a repeated chunk', ([first]) => [first!, first!], 'out_of_order'],
    ['swapped chunks', ([first, second]) => [second!, first!], 'out_of_order'],
    ['a renumbered chunk', ([first, , third]) => [first!, { ...third!, stream_seq: '1' }], 'not_decryptable'],
    ['a moved end', ([first]) => [{ ...first!, stream_end: 'true' }], 'not_decryptable'],
    ['a chunk after the end', (all) => [...all, all[2]!], 'out_of_order'],
  ])('refuses %s', async (_, change, code) => {
    const opener = new StreamOpener(incoming);
    const opened = (async () => {
      for (const chunk of change(await chunks(3))) await opener.open(chunk);
    })();
    await expect(opened).rejects.toEqual(refusal(code));
  });

  it('refuses a chunk of another stream', async () => {
    const [first] = await chunks(2);
    const [, second] = await chunks(2);
    const opener = new StreamOpener(incoming);
    await opener.open(first);
    await expect(opener.open(second)).rejects.toEqual(refusal('out_of_order'));
  });

  it('reports a truncated stream, and accepts no chunk as a whole message', async () => {
    const [first] = await chunks(2);
    const opener = new StreamOpener(incoming);
    await opener.open(first);
    expect(() => opener.end()).toThrow(refusal('truncated'));
    await expect(decrypt(first, incoming)).rejects.toEqual(refusal('malformed'));
  });
});

describe('RI-52 keys', () => {
  it('never publishes a private scalar', () => {
    const shown = JSON.stringify(publicKeys(rotateKeys(alice)));
    for (const { d } of alice.keys) expect(shown).not.toContain(d);
    expect(readKeySet(JSON.parse(shown)).keys).toHaveLength(4);
  });

  it('opens a message in flight after a rotation, and encrypts to the new key', async () => {
    const inFlight = await encrypt('the plan', outgoing);
    const rotated = rotateKeys(bob);
    const { payload } = await decrypt(inFlight, { ...incoming, keys: rotated });
    expect(payload.toString()).toBe('the plan');
    const { recipient_kid: kid } = await encrypt('the plan', { ...outgoing, recipientKeys: publicKeys(rotated) });
    expect(kid).toBe(rotated.keys[2]!.kid);
  });

  it('accepts keys that a pinned key endorses, over several rotations', () => {
    const pinned = checkPins(publicKeys(alice), []);
    const rotated = publicKeys(rotateKeys(rotateKeys(alice)));
    expect(checkPins(rotated, pinned)).toHaveLength(6);
  });

  it.each<[string, KeySet]>([
    ['an additional key', { keys: [...publicKeys(alice).keys, ...publicKeys(bob).keys] }],
    ['other keys', publicKeys(bob)],
    ['a forged endorsement', { keys: [...publicKeys(alice).keys, forgedKey()] }],
  ])('refuses %s as a change', (_, keys) => {
    expect(() => checkPins(keys, checkPins(publicKeys(alice), []))).toThrow(refusal('key_changed'));
  });

  describe('with the keys before and after a rotation pinned', () => {
    const rotated = rotateKeys(alice);
    const listed = publicKeys(rotated).keys;
    const [oldEnc, oldSig, newEnc, newSig] = listed as [PublicKey, PublicKey, PublicKey, PublicKey];
    const pinned = checkPins({ keys: listed }, checkPins(publicKeys(alice), []));

    it.each<[string, KeySet['keys']]>([
      ['the old keys alone', [oldEnc, oldSig]],
      ['the keys in another order', [newEnc, newSig, oldEnc, oldSig]],
      ['the new key to encrypt to left out', [oldEnc, oldSig, newSig]],
      ['a new key that is said to have expired', [oldEnc, oldSig, { ...newEnc, exp: 1 }, newSig]],
      ['a new key that is said to begin later', [oldEnc, oldSig, { ...newEnc, nbf: 9_999_999_999 }, newSig]],
    ])('refuses %s as a change', (_, keys) => {
      for (const pins of [pinned, listed.map(({ kid }) => kid)])
        expect(() => checkPins({ keys }, pins)).toThrow(refusal('key_changed'));
    });

    it.each<[string, KeySet['keys']]>([
      ['the same keys', listed],
      ['the keys without the expired old ones', [newEnc, newSig]],
      ['the keys without the old one to encrypt to', [oldSig, newEnc, newSig]],
      ['the keys without the old one to sign with', [oldEnc, newEnc, newSig]],
      ['the keys after one more rotation', publicKeys(rotateKeys(rotated)).keys],
    ])('accepts %s, and refuses the old ones later', (_, keys) => {
      const pins = checkPins({ keys }, pinned);
      expect(checkPins({ keys }, pins)).toEqual(pins);
      expect(() => checkPins({ keys: [oldEnc, oldSig] }, pins)).toThrow(refusal('key_changed'));
    });

    it('accepts an endorsed key that begins later', () => {
      const keys = publicKeys(rotateKeys(alice, { nbf: 9_999_999_999 }));
      expect(checkPins(keys, checkPins(keys, checkPins(publicKeys(alice), [])))).toHaveLength(4);
    });
  });

  it('does not encrypt to an expired key, or to one of the future', async () => {
    const now = Math.floor(Date.now() / 1_000);
    for (const times of [{ exp: now - 1 }, { nbf: now + 60 }]) {
      const recipientKeys = publicKeys(generateKeys(times));
      await expect(encrypt('x', { ...outgoing, recipientKeys })).rejects.toEqual(refusal('key_expired'));
    }
  });

  it.each<[string, unknown, string]>([
    ['no keys', {}, 'there is no key for use'],
    ['no ring', undefined, 'there is no key for use'],
    ['public keys', publicKeys(alice), 'is only public'],
  ])('names the private keys that are missing in %s', async (_, ring, text) => {
    const keys = ring as KeyRing;
    const missing = expect.objectContaining({ code: 'malformed', message: expect.stringContaining(text) });
    await expect(encrypt('x', { ...outgoing, keys })).rejects.toEqual(missing);
    await expect(decrypt(await encrypt('x', outgoing), { ...incoming, keys })).rejects.toEqual(missing);
    expect(() => rotateKeys(keys)).toThrow(missing);
  });

  it('rotates keys that have all expired, and a peer with pins accepts the new ones', () => {
    const expired = generateKeys({ exp: 1 });
    const rotated = rotateKeys(expired);
    expect(checkPins(publicKeys(rotated), checkPins(publicKeys(expired), []))).toHaveLength(4);
    expect(rotateKeys(rotated).keys.at(-1)!.endorsed_by).toBe(rotated.keys.at(-1)!.kid);
  });

  describe('when the signing key of the sender expires', () => {
    let now: number;
    beforeEach(() => void (now = Math.floor(Date.now() / 1_000)));
    afterEach(() => void jest.useRealTimers());
    const waitUntil = (seconds: number) => jest.useFakeTimers({ now: seconds * 1_000, doNotFake: ['nextTick'] });
    const from = (ring: KeyRing) => {
      const rotated = publicKeys(rotateKeys(ring));
      return { sent: { ...outgoing, keys: ring }, read: { ...incoming, keysOf: () => rotated } };
    };

    it('opens a message of the overlap after a rotation, and refuses it from the expiry on', async () => {
      const { sent, read } = from(generateKeys({ exp: now + 60 }));
      const sealed = await encrypt('x', sent);
      await expect(decrypt(sealed, read)).resolves.toBeDefined();
      waitUntil(now + 60);
      await expect(decrypt(sealed, read)).rejects.toEqual(refusal('key_expired'));
    });

    it('refuses the chunks of a stream from the expiry on', async () => {
      const { sent, read } = from(generateKeys({ exp: now + 60 }));
      const sealer = await StreamSealer.open(sent);
      const [first, second] = [await sealer.seal('1'), await sealer.seal('2', { last: true })];
      const opener = new StreamOpener(read);
      await opener.open(first);
      waitUntil(now + 60);
      await expect(opener.open(second)).rejects.toEqual(refusal('key_expired'));
      await expect(new StreamOpener(read).open(first)).rejects.toEqual(refusal('key_expired'));
    });

    it('refuses a key of the future, but reports a wrong signature first', async () => {
      const early = generateKeys();
      const [enc, sig] = early.keys;
      const keysOf = () => publicKeys({ keys: [enc!, { ...sig!, nbf: now + 60 }] });
      const sealed = await encrypt('x', { ...outgoing, keys: early });
      await expect(decrypt(sealed, { ...incoming, keysOf })).rejects.toEqual(refusal('key_expired'));
      const forged = await encrypt('x', { ...outgoing, keys: { keys: [{ ...alice.keys[1]!, kid: sig!.kid }] } });
      await expect(decrypt(forged, { ...incoming, keysOf })).rejects.toEqual(refusal('bad_signature'));
    });
  });

  it('drops a key with a kid that is not its thumbprint', () => {
    const [key] = publicKeys(alice).keys;
    expect(readKeySet({ keys: [{ ...key, kid: 'mine' }] }).keys).toEqual([]);
    expect(() => readKeySet({ keys: 'none' })).toThrow(refusal('malformed'));
  });
});

function forgedKey() {
  const [key] = publicKeys(rotateKeys(bob)).keys.slice(2);
  return { ...key!, endorsed_by: alice.keys[1]!.kid };
}

/** A small generator with a fixed seed (mulberry32), so that each run tries the same mutations. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Changes one member: a flipped bit, another character, a shorter or longer text, a removed or added member. */
function mutated(envelope: Envelope, names: (keyof Envelope)[], random: (below: number) => number): object {
  const name = names[random(4) === 0 ? random(names.length) : 0]!;
  const text = envelope[name]!;
  const at = random(text.length);
  switch (random(7)) {
    case 0:
      return { ...envelope, [name]: text.slice(0, at) + String.fromCharCode(33 + random(94)) + text.slice(at + 1) };
    case 1:
      return { ...envelope, [name]: text.slice(0, at) };
    case 2:
      return { ...envelope, [name]: text.slice(0, at) + 'A' + text.slice(at) };
    case 3:
      return { ...envelope, [name]: undefined };
    case 4:
      return { ...envelope, [`x${at}`]: 'x' };
    default: {
      const bytes = Buffer.from(envelope.encrypted_payload, 'base64url');
      bytes[random(bytes.length)]! ^= 1 << random(8);
      return { ...envelope, encrypted_payload: bytes.toString('base64url') };
    }
  }
}
