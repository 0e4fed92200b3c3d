import { retryAfterMs } from './retry-after.js';

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
