import { doubled, retryAfterMs, spread } from './backoff.js';

describe('backoff', () => {
  it('doubles a delay with each failure up to its maximum', () => {
    const delays = [0, 1, 2, 3, 4, 5, 2_000].map((failures) => doubled(failures, { firstMs: 100, mostMs: 1_000 }));
    expect(delays).toEqual([100, 100, 200, 400, 800, 1_000, 1_000]);
  });

  it('spreads a delay by a fifth in both directions', () => {
    expect([0, 0.5, 1].map((chance) => Math.round(spread(1_000, chance)))).toEqual([800, 1_000, 1_200]);
  });
});

const now = Date.parse('2026-01-01T00:00:00Z');

it.each([
  ['3', 3_000],
  [' 0 ', 0],
  ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
  ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
  ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
  ['1.5', undefined],
  ['-1', undefined],
  ['soon', undefined],
  [undefined, undefined],
])('reads %j in both forms', (header, ms) => expect(retryAfterMs(header, now)).toBe(ms));
