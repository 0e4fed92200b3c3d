import { RialtoError } from '../../kernel/errors.js';
import { mayRepeat, nextPollAfter, nextTryAfter, type RemoteOperation } from './retry-plan.js';

const read: RemoteOperation = { kind: 'read' };
const now = Date.parse('2026-01-01T00:00:00Z');
const failed = (httpStatus?: number, retryAfter?: string) =>
  new RialtoError('remote_transport', { data: { httpStatus, retryAfter } });
const after = (error: RialtoError, tries = 1, leftMs = 60_000) => nextTryAfter(read, error, { tries, leftMs, now });

describe('the retry plan', () => {
  it('AN-32 makes three tries, after 100 ms and then twice as long', () => {
    expect([1, 2, 3].map((tries) => after(failed(503), tries))).toEqual([100, 200, undefined]);
  });

  it('AN-32 retries only 408, 425, 429, 500, 502, 503 and 504', () => {
    const retried = Array.from({ length: 600 }, (_, status) => status).filter(
      (status) => after(failed(status)) !== undefined,
    );
    expect(retried).toEqual([408, 425, 429, 500, 502, 503, 504]);
    expect(after(failed())).toBeUndefined();
    expect(after(new RialtoError('remote_timeout', { data: { httpStatus: 503 } }))).toBeUndefined();
  });

  it('AN-32 honours Retry-After up to 2 s and does not retry after a longer one', () => {
    expect(after(failed(429, '0'))).toBe(0);
    expect(after(failed(429, '2'))).toBe(2_000);
    expect(after(failed(429, '3'))).toBeUndefined();
    expect(after(failed(503, 'Thu, 01 Jan 2026 00:00:01 GMT'))).toBe(1_000);
    expect(after(failed(503, 'soon'))).toBe(100);
  });

  it('AN-32 never waits past the deadline', () => {
    expect(after(failed(503), 1, 100)).toBeUndefined();
    expect(after(failed(503), 1, 101)).toBe(100);
  });

  it('(N3) polls again after a failure that says nothing about the task, not before Retry-After', () => {
    const next = (error: RialtoError) => nextPollAfter(error, 2_000, now);
    for (const error of [
      failed(),
      new RialtoError('remote_timeout'),
      ...[408, 425, 429, 500, 503, 521].map((status) => failed(status)),
    ])
      expect(next(error)).toBe(2_000);
    expect(next(failed(429, '5'))).toBe(5_000);
    expect(next(failed(503, '1'))).toBe(2_000);
    const ends = [400, 401, 403, 404].map((status) => failed(status));
    for (const error of [...ends, new RialtoError('remote_error'), new RialtoError('canceled')])
      expect(next(error)).toBeUndefined();
  });

  it('AN-33 a send is repeated only when async, with an idempotency key and a subject', () => {
    const whole = { kind: 'send', isAsync: true, idempotencyKey: 'k', subject: 'bob@acme.example' } as const;
    expect(mayRepeat(whole)).toBe(true);
    const parts = [{ isAsync: false }, { idempotencyKey: undefined }, { idempotencyKey: '' }, { subject: undefined }];
    for (const part of parts) expect(mayRepeat({ ...whole, ...part })).toBe(false);
    expect(mayRepeat({ kind: 'write' })).toBe(false);
    expect(mayRepeat(read)).toBe(true);
  });
});
