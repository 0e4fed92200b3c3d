import { GroupCommit } from './group-commit.js';

describe('the lanes of a group commit', () => {
  /** Sizes of the batches that began while none had ended. */
  const begun = (changes: number, laneOpensAt?: number): number[] => {
    const sizes: number[] = [];
    const flush = (batch: number[]): Promise<number[]> => {
      sizes.push(batch.length);
      return new Promise(() => undefined);
    };
    const group = new GroupCommit<number, number>(flush, { maxBatch: 64, laneOpensAt });
    for (let change = 0; change < changes; change++) void group.commit(change);
    return sizes;
  };

  it('open for a full batch, or for as many as they are told', () => {
    expect([begun(64), begun(65)]).toEqual([[1], [1, 64]]);
    expect([begun(20, 20), begun(21, 20), begun(60, 20)]).toEqual([[1], [1, 20], [1, 20]]);
  });
});
