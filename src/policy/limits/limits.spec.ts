import { Buckets, burstOf, takeToken, type Bucket } from './limits.js';

describe('token bucket', () => {
  it('accepts a burst, then refuses and returns the time to wait', () => {
    let bucket: Bucket | undefined;
    for (let request = 0; request < burstOf(60); request++) {
      const taken = takeToken(bucket, 60, 0);
      expect(taken.retryAfterSeconds).toBe(0);
      bucket = taken.bucket;
    }
    expect(takeToken(bucket, 60, 0).retryAfterSeconds).toBe(1);
    expect(takeToken(bucket, 60, 1_000).retryAfterSeconds).toBe(0);
  });

  it('never holds more than its burst, and is not refilled when the clock steps back', () => {
    const full = takeToken({ tokens: 0, at: 0 }, 60, 10_000_000).bucket;
    expect(full.tokens).toBe(burstOf(60) - 1);
    expect(takeToken({ tokens: 0, at: 5_000 }, 60, 0).retryAfterSeconds).toBe(1);
  });
});

describe('token buckets', () => {
  it('count each key separately, and `wait` takes no token', () => {
    const buckets = new Buckets(60);
    for (let request = 0; request < burstOf(60); request++) expect(buckets.takeToken('ours', 0)).toBe(0);
    expect([buckets.wait('ours', 0), buckets.takeToken('ours', 0), buckets.takeToken('theirs', 0)]).toEqual([1, 1, 0]);
    expect([buckets.wait('ours', 1_000), buckets.wait('ours', 1_000)]).toEqual([0, 0]);
  });

  it('drop the least recently used key when there are too many', () => {
    const buckets = new Buckets(60, 2);
    for (let request = 0; request < burstOf(60); request++) buckets.takeToken('first', 0);
    buckets.takeToken('second', 0);
    expect(buckets.takeToken('first', 0)).toBe(1);
    buckets.takeToken('third', 0);
    expect(buckets.takeToken('first', 0)).toBe(1);
    buckets.takeToken('second', 0);
    buckets.takeToken('third', 0);
    expect(buckets.takeToken('first', 0)).toBe(0);
  });
});
