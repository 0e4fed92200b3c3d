import { TextChunks } from './text-chunks.js';

describe('the text of a model as chunks', () => {
  const chunksOf = (pieces: readonly string[], everyMs: number, isAnswer = true) => {
    let now = 0;
    const chunks = new TextChunks({ elapsed: () => now });
    const updates = pieces.map((piece) => {
      now += everyMs;
      return chunks.add(piece);
    });
    return [...updates, chunks.end(isAnswer)].flatMap((update) =>
      update && 'artifact' in update ? [[update.artifact.parts[0]!.text, update.append, update.lastChunk]] : [],
    );
  };

  it('replaces the artifact first, then appends, and marks the last chunk', () => {
    expect(chunksOf(['a', 'b', 'c'], 200)).toEqual([
      ['a', false, false],
      ['b', true, false],
      ['c', true, true],
    ]);
    expect(chunksOf(['a'], 200, false)).toEqual([['a', false, false]]);
    expect(chunksOf([], 200)).toEqual([]);
  });

  it('joins pieces that arrive fast', () => {
    expect(chunksOf(['a', 'b', 'c', 'd', 'e'], 40)).toEqual([
      ['ab', false, false],
      ['cde', true, true],
    ]);
  });

  it('keeps the halves of a character together, and replaces characters that cannot be stored', () => {
    expect(chunksOf(['a\ud83d', '\ude00b', 'c\u0000'], 200).map(([text]) => text)).toEqual(['a', '😀b', 'c\uFFFD']);
    expect(chunksOf(['\ud83d', '\ude00'], 200)).toEqual([['😀', false, true]]);
  });
});
