import { burstOf, take, type Bucket } from './limits.js';

describe('token bucket', () => {
  it('lets a burst pass, then refuses and says how long to wait', () => {
    let bucket: Bucket | undefined;
    for (let request = 0; request < burstOf(60); request++) {
      const taken = take(bucket, 60, 0);
      expect(taken.retryAfterSeconds).toBe(0);
      bucket = taken.bucket;
    }
    expect(take(bucket, 60, 0).retryAfterSeconds).toBe(1);
    expect(take(bucket, 60, 1_000).retryAfterSeconds).toBe(0);
  });

  it('never holds more than its burst, and a clock that steps back refills nothing', () => {
    const full = take({ tokens: 0, at: 0 }, 60, 10_000_000).bucket;
    expect(full.tokens).toBe(burstOf(60) - 1);
    expect(take({ tokens: 0, at: 5_000 }, 60, 0).retryAfterSeconds).toBe(1);
  });
});
