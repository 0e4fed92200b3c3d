import { pauseAfter } from './backoff.js';

describe('pauseAfter', () => {
  it('starts at one second, doubles, and stays at about one minute', () => {
    expect([1, 2, 3, 7, 60, 2_000].map((failures) => pauseAfter(failures, 0.5))).toEqual([
      1_000, 2_000, 4_000, 60_000, 60_000, 60_000,
    ]);
    expect([pauseAfter(1, 0), pauseAfter(1, 0.999)]).toEqual([800, 1_200]);
  });
});
