import { maxAttempts, verdictOf, type TryEnd } from './retry-plan.js';

const now = Date.parse('2026-01-31T12:00:00Z');
const middle = { now, chance: 0.5 };
const after = (attempt: number, end: TryEnd, chance = 0.5) => verdictOf('v1', attempt, end, { now, chance });

describe('the verdict on an attempt', () => {
  it.each([200, 201, 204, 299])('%i counts as delivered', (status) => {
    expect(after(1, { status })).toEqual({ kind: 'delivered' });
  });

  it.each([[undefined], [302], [308], [400], [404], [429], [500], [503]])(
    '%s is tried ten times in total',
    (status) => {
      const attempts = Array.from({ length: maxAttempts('v1') }, (_, index) => index + 1);
      const verdicts = attempts.map((attempt) => after(attempt, { status }));
      expect(verdicts.slice(0, 9).map((verdict) => verdict.kind === 'retry' && verdict.inMs / 1_000)).toEqual([
        5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
      ]);
      expect(verdicts.slice(9)).toEqual([{ kind: 'dead' }]);
    },
  );

  it('410 closes the configuration', () => {
    for (const format of ['v1', 'v0.3', 'task', 'reyn'] as const)
      expect(verdictOf(format, 1, { status: 410 }, middle)).toEqual({ kind: 'closed', reason: 'gone' });
  });

  it('five days with failures only close the configuration in any format, and a success still counts', () => {
    const day = 86_400_000;
    const after5 = { ...middle, failingMs: 5 * day };
    for (const format of ['v1', 'v0.3', 'task', 'reyn'] as const)
      expect(verdictOf(format, 1, { status: 500 }, after5)).toEqual({ kind: 'closed', reason: 'failing' });
    expect(verdictOf('v1', 1, { status: 500 }, { ...middle, failingMs: 5 * day - 1 })).toMatchObject({ kind: 'retry' });
    expect(verdictOf('v1', 1, { status: 200 }, after5)).toEqual({ kind: 'delivered' });
  });

  it('spreads the delays by a fifth in both directions', () => {
    expect(after(1, { status: 500 }, 0)).toEqual({ kind: 'retry', inMs: 4_000 });
    expect(after(1, { status: 500 }, 0.999_999)).toEqual({ kind: 'retry', inMs: 6_000 });
  });

  it.each([
    ['7', 7_000],
    [' 7 ', 7_000],
    ['0', 5_000],
    ['86400', 10_000],
    ['Sat, 31 Jan 2026 12:00:08 GMT', 8_000],
    ['Sat, 31 Jan 2026 11:00:00 GMT', 5_000],
    ['soon', 5_000],
    ['-7', 5_000],
    ['1e9', 5_000],
  ])('Retry-After: %s waits %i ms, never less than planned nor more than twice that', (retryAfter, inMs) => {
    expect(after(1, { status: 503, retryAfter })).toEqual({ kind: 'retry', inMs });
  });

  it('RY-35: three attempts with delays of 0.5 and 2 s; a refused delivery is not retried', () => {
    const ends: TryEnd[] = [{ status: 500 }, { status: 503 }, {}];
    for (const end of ends)
      expect([1, 2, 3].map((attempt) => verdictOf('reyn', attempt, end, middle))).toEqual([
        { kind: 'retry', inMs: 500 },
        { kind: 'retry', inMs: 2_000 },
        { kind: 'closed', reason: 'dead' },
      ]);
    for (const status of [400, 401, 404, 429, 499])
      expect(verdictOf('reyn', 1, { status }, middle)).toEqual({ kind: 'closed', reason: 'dead' });
  });
});
