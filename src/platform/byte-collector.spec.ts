import { ByteCollector } from './byte-collector.js';

const collected = (count: number, chunk: Uint8Array): ByteCollector => {
  const collector = new ByteCollector();
  for (let index = 0; index < count; index++) collector.add(chunk);
  return collector;
};

describe('ByteCollector', () => {
  it('returns the bytes in order, and its size', () => {
    const collector = new ByteCollector();
    expect([collector.size, collector.bytes.length]).toEqual([0, 0]);
    for (const text of ['a', '', 'bc', 'd'.repeat(10_000), 'e']) collector.add(Buffer.from(text));
    expect([collector.size, collector.bytes.toString()]).toEqual([10_004, `abc${'d'.repeat(10_000)}e`]);
  });

  it('does not copy a single chunk', () => {
    const chunk = Buffer.alloc(100_000);
    expect(collected(1, chunk).bytes.buffer).toBe(chunk.buffer);
  });

  it.each([
    ['a byte', 1],
    ['a kilobyte', 1_000],
  ])('allocates memory in proportion to the bytes, in a few buffers, for chunks of %s', (_, size) => {
    const allocate = jest.spyOn(Buffer, 'allocUnsafeSlow');
    const { bytes } = collected(100_000 / size, Buffer.alloc(size));
    expect([bytes.length, bytes.buffer.byteLength]).toEqual([100_000, expect.any(Number)]);
    expect(bytes.buffer.byteLength).toBeLessThanOrEqual(200_000);
    expect(allocate.mock.calls.length).toBeLessThan(20);
    allocate.mockRestore();
  });

  it('never writes into a chunk that it received', () => {
    const shared = Buffer.from('abcdef');
    const collector = new ByteCollector();
    collector.add(shared.subarray(0, 2));
    collector.add(Buffer.from('xy'));
    expect([collector.bytes.toString(), shared.toString()]).toEqual(['abxy', 'abcdef']);
  });

  it('calls a body shredded after 10,000 chunks of less than 64 bytes on average', () => {
    expect(collected(10_000, Buffer.alloc(1)).isShredded).toBe(false);
    expect(collected(10_001, Buffer.alloc(63)).isShredded).toBe(true);
    expect(collected(10_001, Buffer.alloc(64)).isShredded).toBe(false);
  });

  it('starts again when it is cleared', () => {
    const collector = collected(20_000, Buffer.alloc(1));
    collector.clear();
    collector.add(Buffer.from('x'));
    expect([collector.size, collector.bytes.toString(), collector.isShredded]).toEqual([1, 'x', false]);
  });
});
