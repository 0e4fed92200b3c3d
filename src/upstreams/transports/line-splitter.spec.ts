import { LineSplitter, type LongLine } from './line-splitter.js';

describe('LineSplitter', () => {
  it('returns whole lines, independent of how the bytes are split', () => {
    const text = 'one\r\ntwä\n\nthree\nrest';
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter(100);
      const lines: (string | LongLine)[] = [];
      for (let from = 0; from < bytes.length; from += size)
        lines.push(...splitter.splitChunk(bytes.subarray(from, from + size)));
      expect(lines).toEqual(['one', 'twä', '', 'three']);
    }
  });

  it('returns lines up to the limit, and the two ends of a longer line (C31)', () => {
    const take = (...chunks: string[]) => {
      const splitter = new LineSplitter(4);
      return chunks.map((chunk) => [...splitter.splitChunk(Buffer.from(chunk))]);
    };
    expect(take('1234\n', '12', '34\n')).toEqual([['1234'], [], ['1234']]);
    expect(take('12345\n5\n')).toEqual([[{ head: '12345' }, { head: '12345', tail: '12345' }, '5']]);
    expect(take('123', '45', '6\r\n7', '\n')).toEqual([
      [],
      [{ head: '12345' }],
      [{ head: '12345', tail: '123456' }],
      ['7'],
    ]);
  });

  it('does not buffer a line above the limit, and counts its bytes', () => {
    const splitter = new LineSplitter(10_000);
    const piece = Buffer.alloc(6_000, 'x');
    const take = (chunk: Buffer) => [...splitter.splitChunk(chunk)];
    expect([take(piece).length, take(piece).length, splitter.excess]).toEqual([0, 1, 12_000]);
    for (let count = 0; count < 100; count++) expect(take(piece)).toEqual([]);
    const [end] = take(Buffer.from('end\nnext\n')) as [LongLine];
    expect([end.head.length, end.tail!.endsWith('xend'), splitter.excess]).toEqual([4_096, true, 0]);
    expect(end.tail!.length).toBeLessThan(10_000);
  });
});
