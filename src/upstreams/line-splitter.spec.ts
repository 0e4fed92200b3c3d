import { LineSplitter } from './line-splitter.js';

describe('the lines of a program', () => {
  it('are whole however their bytes come', () => {
    const text = 'one\r\ntwä\n\nthree\nrest';
    const bytes = Buffer.from(text);
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter(100);
      const lines: string[] = [];
      for (let from = 0; from < bytes.length; from += size)
        lines.push(...splitter.take(bytes.subarray(from, from + size))!);
      expect(lines).toEqual(['one', 'twä', '', 'three']);
    }
  });

  it('are as long as they may be, and no longer', () => {
    const take = (...chunks: string[]) => {
      const splitter = new LineSplitter(4);
      return chunks.map((chunk) => splitter.take(Buffer.from(chunk)));
    };
    expect(take('1234\n', '12', '34\n')).toEqual([['1234'], [], ['1234']]);
    expect(take('12345\n')).toEqual([undefined]);
    expect(take('123', '45')).toEqual([[], undefined]);
  });
});
