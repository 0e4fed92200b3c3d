import { TextChunks } from './text-chunks.js';

describe('what a model says as chunks', () => {
  const told = (pieces: readonly string[], everyMs: number, isAnswer = true) => {
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

  it('begins anew, goes on, and says which is the last', () => {
    expect(told(['a', 'b', 'c'], 200)).toEqual([
      ['a', false, false],
      ['b', true, false],
      ['c', true, true],
    ]);
    expect(told(['a'], 200, false)).toEqual([['a', false, false]]);
    expect(told([], 200)).toEqual([]);
  });

  it('puts together what comes fast', () => {
    expect(told(['a', 'b', 'c', 'd', 'e'], 40)).toEqual([
      ['ab', false, false],
      ['cde', true, true],
    ]);
  });

  it('keeps the halves of a character together, and stores what can be stored', () => {
    expect(told(['a\ud83d', '\ude00b', 'c\u0000'], 200).map(([text]) => text)).toEqual(['a', '😀b', 'c\uFFFD']);
    expect(told(['\ud83d', '\ude00'], 200)).toEqual([['😀', false, true]]);
  });
});
