import { oversized } from './message-size.js';

const sealed = (bytes: number, more: object = {}) => {
  const payload = Buffer.alloc(Math.ceil((bytes * 3) / 4), 1)
    .toString('base64url')
    .slice(0, bytes);
  return { parts: [{ data: { encrypted_payload: payload, encryption_version: 'hpke-v1', ...more } }] };
};
const metadataOf = (bytes: number) => ({ m: 'x'.repeat(bytes - '{"m":""}'.length) });
const plain = (bytes: number) => ({ parts: [{ text: 'x'.repeat(bytes - '[{"text":""}]'.length) }] });

describe('the size of a message', () => {
  it('has no limit of its own unless the deployment sets one', () => {
    expect(oversized({ ...plain(900_000), metadata: metadataOf(100_000) }, metadataOf(100_000), {})).toBeUndefined();
  });

  it('is counted in bytes of JSON, up to the limit itself', () => {
    const limits = { payloadBytes: 1_000, metadataBytes: 100 };
    expect(oversized({ ...plain(1_000), metadata: metadataOf(100) }, metadataOf(100), limits)).toBeUndefined();
    expect(oversized(plain(1_001), undefined, limits)).toEqual({ field: 'parts', bytes: 1_001, maxBytes: 1_000 });
    for (const [own, outer] of [
      [metadataOf(101), undefined],
      [undefined, metadataOf(101)],
    ])
      expect(oversized({ ...plain(50), metadata: own }, outer, limits)).toEqual({
        field: 'metadata',
        bytes: 101,
        maxBytes: 100,
      });
    expect(oversized({ parts: [{ text: 'ü'.repeat(500) }] }, undefined, limits)).toMatchObject({ bytes: 1_013 });
  });

  it('has the metadata of its parts within the limit of metadata, all together', () => {
    const parts = (...bytes: number[]) => bytes.map((n) => ({ text: 'x', metadata: metadataOf(n) }));
    const limits = { metadataBytes: 103 };
    expect(oversized({ parts: parts(50, 50) }, undefined, limits)).toBeUndefined();
    for (const many of [parts(50, 51), parts(102)])
      expect(oversized({ parts: many }, undefined, limits)).toMatchObject({ field: 'metadata', bytes: 104 });
    const [part] = sealed(100).parts;
    const message = { parts: [{ ...part!, metadata: metadataOf(4_100) }] };
    expect(oversized(message, undefined, {})).toMatchObject({ field: 'metadata', maxBytes: 4_096 });
  });

  it('of an encrypted one is limited in any deployment', () => {
    expect(oversized({ ...sealed(131_072), metadata: metadataOf(4_096) }, undefined, {})).toBeUndefined();
    expect(oversized(sealed(131_073), undefined, {})).toEqual({
      field: 'encrypted_payload',
      bytes: 131_073,
      maxBytes: 131_072,
    });
    const two = { parts: [...sealed(65_536).parts, ...sealed(65_537).parts] };
    expect(oversized(two, undefined, {})).toMatchObject({ field: 'encrypted_payload', bytes: 131_073 });
    for (const message of [
      { ...sealed(100), metadata: metadataOf(4_097) },
      sealed(100, { metadata: metadataOf(4_097) }),
    ])
      expect(oversized(message, undefined, { metadataBytes: 9_000 })).toMatchObject({
        field: 'metadata',
        bytes: 4_097,
        maxBytes: 4_096,
      });
  });
});
