import { waitOf } from './wait-bounds.js';

describe('the time of a wait', () => {
  it('lies between one second and five minutes, which is the default', () => {
    expect([undefined, 1_000, 2_500.5, 300_000].map((timeoutMs) => waitOf(timeoutMs))).toEqual([
      300_000, 1_000, 2_500.5, 300_000,
    ]);
  });

  it.each([0, -1, 999, 300_001, Number.NaN, Number.POSITIVE_INFINITY])('is never %p ms', (timeoutMs) => {
    expect(() => waitOf(timeoutMs)).toThrow(`timeoutMs is ${timeoutMs}; a wait takes from 1000 to 300000 ms`);
  });
});
