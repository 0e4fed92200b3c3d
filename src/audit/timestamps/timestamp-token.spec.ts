import { X509Certificate } from 'node:crypto';
import { Random } from '../../../test/support/fuzz/random.js';
import { makeAuthority, type Authority, type Flaws } from '../../../test/support/timestamps/authority.js';
import { stampRequest, tokenOf } from './time-stamping.js';
import { isTrusted, verifyTimestamp, type Timestamp } from './timestamp-token.js';

const text = '{"number":1}';
const timeStamping = '1.3.6.1.5.5.7.3.8';

describe('a timestamp', () => {
  let authority: Authority;
  let other: Authority;
  const certificateOf = ({ ca }: Authority) => new X509Certificate(ca);
  beforeAll(async () => void ([authority, other] = await Promise.all([makeAuthority(), makeAuthority('Other')])));

  const attempt = (token: Buffer): Timestamp | string => {
    try {
      return verifyTimestamp(token, text);
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('has the time of the authority, and is for its text only', async () => {
    const at = new Date('2026-01-05T10:00:31.250Z');
    const token = await authority.stamp(text, { at });
    expect(verifyTimestamp(token, text).at).toEqual(at);
    expect(() => verifyTimestamp(token, `${text} `)).toThrow('it is for another text');
  });

  it.each<[string, Flaws, RegExp]>([
    ['a content that was changed', { changesContent: true }, /for another content/],
    ['a signature by another key', { otherKey: true }, /signature is wrong/],
    ['a signature for another kind of content', { contentType: '1.2.840.113549.1.7.1' }, /for another content/],
    ['a signature that names no certificate', { unnamed: true }, /does not have the certificate that signed/],
  ])('is refused with %s', async (_what, flaws, message) => {
    const token = await authority.stamp(text, flaws);
    expect(() => verifyTimestamp(token, text)).toThrow(message);
  });

  it.each<[string, { purposes?: string[]; critical?: boolean }]>([
    ['another purpose', { purposes: ['1.3.6.1.5.5.7.3.1'] }],
    ['a second purpose', { purposes: [timeStamping, '1.3.6.1.5.5.7.3.1'] }],
    ['a purpose that is not critical', { critical: false }],
  ])('is refused when its certificate has %s', async (_what, usage) => {
    const token = await (await makeAuthority('Server', usage)).stamp(text);
    expect(() => verifyTimestamp(token, text)).toThrow('its certificate is not for time stamping');
  });

  it.each<[string, (token: Buffer) => Buffer]>([
    ['with bytes after it', (token) => Buffer.concat([token, Buffer.of(0)])],
    ['that is cut off', (token) => token.subarray(0, -1)],
    ['that is empty', () => Buffer.alloc(0)],
    ['that is nested without end', () => Buffer.alloc(60_000, Buffer.of(0x30, 0x80))],
  ])('is refused %s', async (_what, change) => {
    const token = change(await authority.stamp(text));
    expect(attempt(token)).toBe('unprocessable');
  });

  it('is trusted when its certificate leads to a given authority and was valid at its time', async () => {
    const known = verifyTimestamp(await authority.stamp(text), text);
    expect(isTrusted(known, [certificateOf(other), certificateOf(authority)])).toBe(true);
    expect(isTrusted(known, [known.signer])).toBe(true);
    expect(isTrusted(known, [certificateOf(other)])).toBe(false);
    const until = new Date(Date.now() - 60_000);
    const expired = await makeAuthority('Expired', { until });
    const trusted = async (at: Date) =>
      isTrusted(verifyTimestamp(await expired.stamp(text, { at }), text), [certificateOf(expired)]);
    expect([await trusted(new Date(until.getTime() - 60_000)), await trusted(new Date())]).toEqual([true, false]);
  });

  it('is not accepted with another content after any of 500 changes', async () => {
    const random = new Random(86);
    const token = await authority.stamp(text);
    const { at, signer } = verifyTimestamp(token, text);
    let accepted = 0;
    for (let round = 0; round < 500; round++) {
      const answer = attempt(mutated(token, random));
      if (answer === 'unprocessable') continue;
      // The signature does not cover all bytes, for example the list of hash algorithms before it.
      expect(answer).toMatchObject({ at, signer: { fingerprint256: signer.fingerprint256 } });
      accepted++;
    }
    expect(accepted).toBeLessThan(50);
  });
});

describe('a request for a timestamp', () => {
  const stamp = stampRequest(text);
  let authority: Authority;
  beforeAll(async () => void (authority = await makeAuthority()));

  it('gets the token of the answer unchanged', async () => {
    const answer = await authority.answer(stamp.der, { status: 1 });
    const token = tokenOf(answer, stamp);
    expect(answer.includes(Buffer.from(token))).toBe(true);
    expect(verifyTimestamp(token, text).nonce).toBe(stamp.nonce);
    expect(stampRequest(text).nonce).not.toBe(stamp.nonce);
  });

  it.each<[string, Flaws, RegExp]>([
    ['a refusal', { status: 2 }, /refused with status 2/],
    ['another text', { imprintOf: 'other' }, /for another text/],
    ['another nonce', { nonce: Buffer.of(1) }, /for another request/],
    ['a wrong signature', { changesContent: true }, /no valid timestamp/],
  ])('does not accept %s', async (_what, flaws, message) => {
    const answer = await authority.answer(stamp.der, flaws);
    expect(() => tokenOf(answer, stamp)).toThrow(message);
  });

  it('does not accept an answer that is no TimeStampResp', () => {
    for (const answer of [Buffer.from('<html>'), Buffer.alloc(0), stamp.der])
      expect(() => tokenOf(answer, stamp)).toThrow('the answer is not that of a time-stamping authority');
  });
});

/** Changes a bit or a byte, or removes, repeats or inserts some bytes. */
function mutated(token: Buffer, random: Random): Buffer {
  const at = random.whole(token.length);
  const end = Math.min(token.length, at + 1 + random.whole(8));
  const [before, part, after] = [token.subarray(0, at), token.subarray(at, end), token.subarray(end)];
  const flipped = Buffer.from(token);
  flipped[at]! ^= 1 << random.whole(8);
  const changes = [
    flipped,
    Buffer.concat([before, after]),
    Buffer.concat([before, part, part, after]),
    Buffer.concat([before, Buffer.from(part.map(() => random.whole(256))), after]),
  ];
  return random.pick(changes);
}
