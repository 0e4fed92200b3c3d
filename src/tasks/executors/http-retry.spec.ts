import { pauseAfter } from './http-retry.js';

const now = Date.parse('2026-01-01T00:00:00Z');

describe('the pause before a retry', () => {
  it('grows, and there is none after the fifth attempt', () => {
    const all = [1, 2, 3, 4, 5].map((attempt) => pauseAfter(attempt, { status: 503 }, now));
    expect(all).toEqual([1_000, 5_000, 15_000, 30_000, undefined]);
  });

  it.each([undefined, 408, 425, 429, 500, 502, 599])('follows a status that may be temporary: %s', (status) =>
    expect(pauseAfter(1, { status }, now)).toBe(1_000),
  );

  it.each([301, 307, 400, 401, 404, 409, 410, 422])('does not follow a status that is final: %s', (status) =>
    expect(pauseAfter(1, { status, retryAfter: '1' }, now)).toBeUndefined(),
  );

  it.each([
    ['0', 0],
    ['7', 7_000],
    ['3600', 60_000],
    ['Thu, 01 Jan 2026 00:00:20 GMT', 20_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['soon', 1_000],
  ])('is the Retry-After of the service, a minute at most: %s', (retryAfter, pause) =>
    expect(pauseAfter(1, { status: 429, retryAfter }, now)).toBe(pause),
  );
});
