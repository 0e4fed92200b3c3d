import { hasShare, type Places } from './fair-share.js';

describe('hasShare', () => {
  /** Gives places to members, one after the other, until each has its share. */
  const shares = (places: Places, members: number): number[] => {
    let taken = 0;
    return Array.from({ length: members }, () => {
      let own = 0;
      for (; !hasShare(own, taken, places); own++) taken++;
      return own;
    });
  };

  it('is true at the limit for one alone, and earlier beside others', () => {
    expect(shares({ all: 125, ofMember: 100 }, 5)).toEqual([100, 20, 4, 1, 0]);
    expect(shares({ all: 32, ofMember: 24 }, 4)).toEqual([24, 6, 1, 1]);
    expect(shares({ all: 8, ofMember: 6 }, 3)).toEqual([6, 1, 1]);
  });

  it('is true only when all places are taken, for members without a limit of their own', () => {
    expect(shares({ all: 3, ofMember: 3 }, 2)).toEqual([3, 0]);
    expect(shares({ all: 1, ofMember: 1 }, 2)).toEqual([1, 0]);
  });

  it('counts bytes as well, and gives one alone a piece of any size', () => {
    const bytes = { all: 48, ofMember: 16 };
    expect(hasShare(0, 0, bytes, 100)).toBe(false);
    expect(hasShare(12, 12, bytes, 4)).toBe(false);
    expect(hasShare(12, 12, bytes, 5)).toBe(true);
    expect(hasShare(6, 22, bytes, 4)).toBe(false);
    expect(hasShare(6, 22, bytes, 5)).toBe(true);
    expect(hasShare(0, 47, bytes, 2)).toBe(true);
  });

  it('is true for a member that has more than its share since others came', () => {
    expect(hasShare(100, 110, { all: 125, ofMember: 100 })).toBe(true);
    expect(hasShare(91, 101, { all: 125, ofMember: 100 })).toBe(false);
  });
});
